"""The commands as functions. Everything is imported from the package itself.

The functions do what the commands of the same names do, but return values instead of printing
them. `to_dict` converts any of these values to the command's JSON. Failures raise a
`DeltaprotoError` with `message`, `hint` and `exit_code`. An active SparkSession, as in notebooks
and jobs, is used.
"""

from deltaproto.app.executing import apply
from deltaproto.app.planning import plan_downgrade, plan_upgrade
from deltaproto.app.reading import check, inspect_table
from deltaproto.app.serialize import to_dict

__all__ = ["apply", "check", "inspect_table", "plan_downgrade", "plan_upgrade", "to_dict"]
