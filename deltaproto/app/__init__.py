"""The commands as functions. Everything is imported from the package itself.

The functions do what the commands of the same names do, and return values in place of printing
them; `to_dict` gives any of these values as the commands' JSON holds it. Who cannot answer raises a
`DeltaprotoError` with `message`, `hint` and `exit_code`. Where a SparkSession is active, as in
notebooks and jobs, it is used.
"""

from deltaproto.app.executing import apply
from deltaproto.app.planning import plan_downgrade, plan_upgrade
from deltaproto.app.reading import check, inspect_table
from deltaproto.app.serialize import to_dict

__all__ = ["apply", "check", "inspect_table", "plan_downgrade", "plan_upgrade", "to_dict"]
