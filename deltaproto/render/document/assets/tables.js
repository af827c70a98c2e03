"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const [NAME, PLACE, KIND, VERSION, COMMIT, ENGINE, GROUP, FINDINGS] = [0, 1, 2, 3, 4, 5, 6, 7];
  const SIZE = 100;
  const VERDICTS = { w: "wrong", u: "unknown", r: "refused" };
  const byId = (id) => document.getElementById(id);
  const make = (tag, text, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    return element;
  };
  const number = (value) => value.toLocaleString("en");
  for (const kind of data.kinds) {
    kind.clients = [...new Set(kind.v.map(([at]) => data.accesses[at][0]))];
    kind.said = kind.clients + "|" + [...new Set(kind.v.flatMap(([, , because]) => because))].sort();
  }
  // Tables that are alike stand together under "Tables to fix first".
  const said = (row) => {
    const rules = row[FINDINGS].map((at) => data.findings[at]);
    const graver = rules.filter(([, severity]) => severity !== "info").map(([rule]) => rule);
    return data.kinds[row[KIND]].said + "|" + [...new Set(graver)].sort();
  };
  const location_of = (row) => row[PLACE] || row[NAME];

  const fields = ["q", "protocol", "feature", "client", "access", "group", "rule"];
  const empty = () => ({ q: "", protocol: "", feature: "", client: "", access: "", group: "", rule: "",
    sort: "table", down: false, page: 0, table: -1, alike: -1 });
  let state = empty();

  const fill = (id, values) => {
    for (const value of values) {
      const option = make("option", value);
      option.value = value;
      byId(id).append(option);
    }
  };
  const sorted = (values) => [...new Set(values)].sort();
  fill("protocol", sorted(data.kinds.map((kind) => kind.p)));
  fill("feature", sorted(data.features));
  fill("client", sorted(data.accesses.map(([client]) => client)));
  fill("access", sorted(data.accesses.map(([, access]) => access)));
  fill("group", sorted(data.groups));
  fill("rule", sorted(data.findings.map(([rule]) => rule)));

  // What a kind of tables fulfils is worked out once, and not for each of them.
  const fits = (kind) => {
    if (state.protocol && kind.p !== state.protocol) return false;
    const feature = data.features.indexOf(state.feature);
    if (state.client || state.access) {
      return kind.v.some(([at, , because]) =>
        (!state.client || data.accesses[at][0] === state.client) &&
        (!state.access || data.accesses[at][1] === state.access) &&
        (!state.feature || because.includes(feature)));
    }
    return !state.feature || kind.f.some(([name]) => name === feature);
  };
  const keys = {
    table: (row) => row[NAME].toLowerCase(),
    protocol: (row) => data.kinds[row[KIND]].p,
    clients: (row) => data.kinds[row[KIND]].clients.length,
    findings: (row) => row[FINDINGS].length,
    commit: (row) => row[COMMIT],
  };
  const chosen = () => {
    const good = data.kinds.map(fits);
    const first = data.tables[state.alike];
    const twin = first ? said(first) : "";
    const wanted = state.q.toLowerCase();
    const group = data.groups.indexOf(state.group);
    const rules = new Set(data.findings.flatMap(([rule], at) => (rule === state.rule ? [at] : [])));
    const found = [];
    data.tables.forEach((row, at) => {
      if (state.table >= 0 && at !== state.table) return;
      if (twin && said(row) !== twin) return;
      if (!good[row[KIND]]) return;
      if (state.group && row[GROUP] !== group) return;
      if (state.rule && !row[FINDINGS].some((each) => rules.has(each))) return;
      if (wanted && !row[NAME].toLowerCase().includes(wanted) &&
          !location_of(row).toLowerCase().includes(wanted)) return;
      found.push(at);
    });
    const key = keys[state.sort];
    const values = new Map(found.map((at) => [at, key(data.tables[at])]));
    const sign = state.down ? -1 : 1;
    return found.sort((a, b) => {
      const [x, y] = [values.get(a), values.get(b)];
      return (x < y ? -1 : x > y ? 1 : 0) * sign || a - b;
    });
  };

  const details = (row) => {
    const kind = data.kinds[row[KIND]];
    const list = make("dl");
    const add = (name, ...parts) => {
      const pair = make("div");
      const value = make("dd");
      value.append(...parts);
      pair.append(make("dt", name), value);
      list.append(pair);
    };
    add("Location", make("code", location_of(row)));
    add("Version", String(row[VERSION]));
    add("Isolation", kind.i || "not set");
    add("Last written by", data.engines[row[ENGINE]] || "not told");
    const marks = kind.f.map(([name, bits]) => {
      const how = [bits & 1 ? "enabled" : "", bits & 2 ? "present" : ""].filter(Boolean).join(", ");
      return data.features[name] + (how ? " (" + how + ")" : "");
    });
    add("Features", marks.join("; ") || "none");
    for (const [at, letter, because] of kind.v) {
      const [client, access] = data.accesses[at];
      const why = because.map((name) => data.features[name]).join(", ");
      add(client, access + ": " + VERDICTS[letter] + (why ? ", because of " + why : ""));
    }
    for (const each of row[FINDINGS]) {
      const [rule, severity, message] = data.findings[each];
      add(rule, severity + ": " + message);
    }
    return list;
  };

  const body = byId("list").tBodies[0];
  const toggle = (button, line, row) => {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    if (open) {
      line.nextSibling.remove();
      return;
    }
    const more = make("tr", undefined, "more");
    const cell = make("td");
    cell.colSpan = 6;
    cell.append(details(row));
    more.append(cell);
    line.after(more);
  };
  const shown = (at) => {
    const row = data.tables[at];
    const kind = data.kinds[row[KIND]];
    const line = make("tr");
    const button = make("button", row[NAME], "open");
    button.type = "button";
    button.setAttribute("aria-expanded", "false");
    button.addEventListener("click", () => toggle(button, line, row));
    const first = make("td");
    first.append(button);
    const names = kind.f.map(([name]) => data.features[name]);
    line.append(
      first,
      make("td", kind.p),
      make("td", names.slice(0, 4).join(", ") + (names.length > 4 ? " and " + (names.length - 4) + " more" : "")),
      make("td", kind.clients.length ? number(kind.clients.length) + (kind.clients.length > 1 ? " clients" : " client") : ""),
      make("td", row[FINDINGS].length ? number(row[FINDINGS].length) : ""),
      make("td", row[COMMIT].replace("T", " ").replace("Z", "")),
    );
    return [line, button, row];
  };

  let found = [];
  const draw = () => {
    found = chosen();
    const pages = Math.max(1, Math.ceil(found.length / SIZE));
    state.page = Math.min(Math.max(state.page, 0), pages - 1);
    const lines = found.slice(state.page * SIZE, (state.page + 1) * SIZE).map(shown);
    body.replaceChildren(...lines.map(([line]) => line));
    if (state.table >= 0 && lines.length === 1) toggle(lines[0][1], lines[0][0], lines[0][2]);
    const left = data.left ? "; " + number(data.left) + " more are not in this page" : "";
    byId("count").textContent =
      number(found.length) + " of " + number(data.tables.length) + " tables" + left;
    byId("page").textContent = "Page " + number(state.page + 1) + " of " + number(pages);
    byId("before").disabled = state.page === 0;
    byId("after").disabled = state.page >= pages - 1;
    for (const head of document.querySelectorAll("th[data-sort]")) {
      if (head.dataset.sort === state.sort) {
        head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      } else {
        head.removeAttribute("aria-sort");
      }
    }
  };

  // What is shown stands in the address, so that it can be sent to somebody.
  const keep = () => {
    const words = new URLSearchParams();
    for (const name of fields) if (state[name]) words.set(name, state[name]);
    if (state.table >= 0) words.set("table", state.table);
    if (state.alike >= 0) words.set("alike", state.alike);
    if (state.sort !== "table" || state.down) words.set("sort", (state.down ? "-" : "") + state.sort);
    if (state.page) words.set("page", state.page + 1);
    const text = words.toString();
    history.replaceState(null, "", "#tables" + (text ? "?" + text : ""));
  };
  const change = (values) => {
    Object.assign(state, { page: 0, table: -1, alike: -1 }, values);
    keep();
    draw();
  };
  const read = (scroll) => {
    const [anchor, text] = location.hash.slice(1).split("?");
    if (anchor !== "tables") return;
    const words = new URLSearchParams(text || "");
    state = empty();
    for (const name of fields) state[name] = words.get(name) || "";
    const sort = words.get("sort") || "table";
    state.sort = sort.replace(/^-/, "") in keys ? sort.replace(/^-/, "") : "table";
    state.down = sort.startsWith("-");
    state.page = (parseInt(words.get("page"), 10) || 1) - 1;
    const place = (name) => {
      const found = parseInt(words.get(name), 10);
      return found >= 0 && found < data.tables.length ? found : -1;
    };
    [state.table, state.alike] = [place("table"), place("alike")];
    for (const name of fields) {
      const field = byId(name);
      field.value = state[name];
      if (field.tagName === "SELECT" && field.value !== state[name]) {
        field.value = "";
        state[name] = "";
      }
    }
    if (scroll) byId("tables").scrollIntoView();
  };

  let waiting;
  byId("q").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => change({ q: event.target.value }), 120);
  });
  for (const name of fields.slice(1)) {
    byId(name).addEventListener("change", (event) => change({ [name]: event.target.value }));
  }
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", () => { state = empty(); setTimeout(() => change({}), 0); });
  for (const head of document.querySelectorAll("th[data-sort]")) {
    head.firstChild.addEventListener("click", () => {
      const down = state.sort === head.dataset.sort ? !state.down : head.dataset.sort !== "table";
      change({ sort: head.dataset.sort, down });
    });
  }
  const turn = (by) => { state.page += by; keep(); draw(); byId("tables").scrollIntoView(); };
  byId("before").addEventListener("click", () => turn(-1));
  byId("after").addEventListener("click", () => turn(1));
  addEventListener("hashchange", () => { read(true); draw(); });
  read(true);
  draw();
})();
