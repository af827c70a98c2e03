"""The list of all tables, filled by a script, with search, filters and sorting; links to it."""

from __future__ import annotations

from urllib.parse import urlencode

from deltaproto.render.interface import escape_control_chars

EXPLORER = """
<section id='tables'><h2>All tables</h2>
<noscript><p>The list of all tables needs JavaScript.</p></noscript>
<form id='filters' role='search' aria-label='Tables'>
<label>Search <input type='search' id='q' autocomplete='off' placeholder='name or location'></label>
<label>Protocol <select id='protocol'><option value=''>any</option></select></label>
<label>Feature <select id='feature'><option value=''>any</option></select></label>
<label>Not usable by <select id='client'><option value=''>any client</option></select></label>
<label>Access <select id='access'><option value=''>any</option></select></label>
<label>Folder <select id='group'><option value=''>any</option></select></label>
<label>Finding <select id='rule'><option value=''>any</option></select></label>
<button type='reset'>Show all</button>
</form>
<p id='count' role='status'></p>
<div class='scroll' tabindex='0' role='group' aria-label='Tables'>
<table id='list'><thead><tr>
<th scope='col' data-sort='table'><button type='button'>Table</button></th>
<th scope='col' data-sort='protocol'><button type='button'>Protocol</button></th>
<th scope='col'>Features</th>
<th scope='col' data-sort='clients'><button type='button'>Not usable by</button></th>
<th scope='col' data-sort='findings'><button type='button'>Findings</button></th>
<th scope='col' data-sort='commit'><button type='button'>Last commit</button></th>
</tr></thead><tbody></tbody></table></div>
<p class='pages'><button type='button' id='before'>Earlier</button>
<span id='page'></span>
<button type='button' id='after'>Later</button></p>
</section>
"""


def versions(pair: tuple[int, int]) -> str:
    """Return a protocol version as text."""
    return f"({pair[0]},{pair[1]})"


def query(**values: str) -> str:
    """Return a link to the list of tables, filtered by these values."""
    return "tables?" + urlencode(
        {name: escape_control_chars(value) for name, value in values.items()}
    )
