"""Who is writing to a table now, how often, and when it is quiet."""

from deltaproto.activity.forecast import Forecast, forecast
from deltaproto.activity.read import read_activity, recent_activity
from deltaproto.activity.releases import recent_releases, releases_of
from deltaproto.activity.summary import Activity, QuietHour, Stream, Writer, summarise

__all__ = [
    "Activity",
    "Forecast",
    "QuietHour",
    "Stream",
    "Writer",
    "forecast",
    "read_activity",
    "recent_activity",
    "recent_releases",
    "releases_of",
    "summarise",
]
