// The flame graphs of the page: zoom by click or Enter, search (f), another measure, arrows.
// Each frame is as wide as its weight, in a comparison as both weights together; callers
// stand above.
'use strict';
(function () {
  const box = document.getElementById('flame');
  if (!box) return;
  const data = JSON.parse(document.getElementById('flame-data').textContent);
  const stage = document.getElementById('flame-stage');
  const detail = document.getElementById('flame-detail');
  const choice = document.getElementById('flame-measure');
  const search = document.getElementById('flame-search');
  const reset = document.getElementById('flame-reset');
  const ROW = 20;
  const NARROWEST = 0.05; // percent of the width

  let measure, root, zoomed;

  // ---- the tree ----

  function build(graph) {
    const path = [];
    for (let i = 0; i < graph.nodes.length; i += 5) {
      const [depth, name, module, first, second] = graph.nodes.slice(i, i + 5);
      const node = { depth, name: data.names[name], module: data.modules[module], children: [], parent: path[depth - 1] };
      if (graph.compared) {
        Object.assign(node, { before: first, after: second, weight: first + second });
        node.colour = data.shades[Math.round(second / node.weight * (data.shades.length - 1))];
      } else {
        Object.assign(node, { weight: first, count: second, colour: data.colours[module] });
      }
      if (node.parent) node.parent.children.push(node);
      path[depth] = node;
    }
    return path[0];
  }

  // ---- words: the same figures as in the tables ----

  function figures(value) {
    if (value < 9.995) return value.toFixed(2);
    return value < 99.95 ? value.toFixed(1) : value.toFixed(0);
  }

  function size(bytes) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
    let unit = 0;
    while (bytes >= 999.5 && unit < units.length - 1) { bytes /= 1024; unit++; }
    return (unit === 0 ? bytes.toFixed(0) : figures(bytes)) + ' ' + units[unit];
  }

  function duration(ns) {
    if (ns < 999.5) return ns.toFixed(0) + ' ns';
    if (ns < 999.5e3) return figures(ns / 1e3) + ' µs';
    if (ns < 999.5e6) return figures(ns / 1e6) + ' ms';
    return figures(ns / 1e9) + ' s';
  }

  function weight(value) {
    if (measure.unit === 'bytes') return size(value);
    if (measure.unit === 'bytes/s') return size(value) + '/s';
    return measure.unit === 'nanoseconds' ? duration(value) : value.toLocaleString('en-US');
  }

  function percent(part) {
    const p = part * 100;
    return (p > 0 && p < 0.1 ? '< 0.1' : p < 9.95 ? p.toFixed(1) : p.toFixed(0)) + ' %';
  }

  function change(node) {
    if (!node.before) return 'only after';
    if (!node.after) return 'only before';
    const p = (node.after / node.before - 1) * 100;
    return (p < 0 ? '' : '+') + (Math.abs(p) < 9.95 ? p.toFixed(1) : p.toFixed(0)) + ' %';
  }

  function describe(node) {
    let text = node.name + (node.module ? ' (' + node.module + ')' : '') + ': ';
    if (measure.compared) return text + weight(node.before) + ' → ' + weight(node.after) + ', ' + change(node);
    text += weight(node.weight) + ', ' + percent(node.weight / root.weight);
    if (measure.unit !== 'count') text += ', ' + node.count.toLocaleString('en-US') + ' ' + measure.counted + (node.count === 1 ? '' : 's');
    return text;
  }

  // ---- drawing ----

  function draw(focus) {
    stage.replaceChildren();
    let deepest = 0;
    const place = (node, left, width) => {
      if (width < NARROWEST) return;
      deepest = Math.max(deepest, node.depth);
      frame(node, left, width);
      let at = left;
      for (const child of node.children) {
        const part = width * child.weight / node.weight;
        place(child, at, part);
        at += part;
      }
    };
    for (let above = zoomed.parent; above; above = above.parent) frame(above, 0, 100).classList.add('above');
    place(zoomed, 0, 100);
    stage.style.height = (deepest + 1) * ROW + 'px';
    reset.hidden = zoomed === root;
    highlight();
    const target = focus && focus.element && focus.element.isConnected ? focus : zoomed;
    target.element.tabIndex = 0;
    if (focus) target.element.focus({ preventScroll: true });
    say(zoomed);
  }

  function frame(node, left, width) {
    const element = document.createElement('button');
    element.type = 'button';
    element.className = 'frame' + (width > 1.5 ? ' named' : '') + (node.depth ? '' : ' whole');
    element.style.cssText = `left:${left}%;width:${width}%;top:${node.depth * ROW}px;${node.depth ? 'background:' + node.colour : ''}`;
    element.tabIndex = -1;
    element.textContent = width > 1.5 ? node.name : '';
    element.setAttribute('aria-label', node.name); // the line above says the rest, and is read aloud
    element.node = node;
    node.element = element;
    stage.append(element);
    return element;
  }

  function say(node) { detail.textContent = describe(node); }

  function zoom(node, focus) {
    zoomed = node;
    draw(focus ? node : null);
  }

  // ---- the legend: what the colours mean ----

  function explain() {
    const swatches = measure.compared ? changes() : modules();
    document.getElementById('flame-legend').replaceChildren(...swatches.map(([colour, label]) => {
      const item = document.createElement('li');
      const swatch = document.createElement('span');
      swatch.className = 'swatch';
      swatch.style.background = colour;
      item.append(swatch, label);
      return item;
    }));
  }

  function changes() {
    const at = (share) => data.shades[Math.round(share * (data.shades.length - 1))];
    return [[at(0), 'only before'], [at(0.44), 'shrank'], [at(0.5), 'stayed'], [at(0.56), 'grew'], [at(1), 'only after']];
  }

  // modules lists those with the widest frames.
  function modules() {
    const MOST = 12;
    const widest = new Map();
    const visit = (node) => {
      if (node.module && !(widest.get(node.module)?.weight >= node.weight)) widest.set(node.module, node);
      node.children.forEach(visit);
    };
    visit(root);
    const all = [...widest.values()].sort((a, b) => b.weight - a.weight).map((node) => [node.colour, node.module]);
    return all.length > MOST ? all.slice(0, MOST).concat([['none', 'and ' + (all.length - MOST) + ' more']]) : all;
  }

  // ---- search: the frames that match, and their share of the whole ----

  // matcher reads the search as a regular expression or, where it is none, as it stands.
  function matcher(word) {
    try { return new RegExp(word, 'i'); } catch { return new RegExp(word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'i'); }
  }

  function highlight() {
    const word = search.value.trim();
    const pattern = matcher(word);
    const hit = (node) => word && pattern.test(node.name + ' ' + node.module);
    for (const element of stage.children) element.classList.toggle('hit', Boolean(hit(element.node)));
    stage.classList.toggle('searching', Boolean(word));
    const found = document.getElementById('flame-found');
    if (!word) { found.textContent = ''; return; }
    const sum = (node) => hit(node) ? node.weight : node.children.reduce((total, child) => total + sum(child), 0);
    found.textContent = percent(sum(root) / root.weight) + ' matches';
  }

  // ---- hands ----

  function show(name) {
    measure = data.measures.find((m) => m.name === name) || data.measures[0];
    root = zoomed = build(measure);
    choice.value = measure.name;
    explain();
    draw();
  }

  choice.disabled = data.measures.length < 2;
  for (const m of data.measures) choice.add(new Option(m.name, m.name));
  choice.addEventListener('change', () => show(choice.value));
  search.addEventListener('input', highlight);
  search.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') { search.value = ''; highlight(); search.blur(); }
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'f' || event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, textarea, select')) return;
    event.preventDefault();
    search.focus();
    box.scrollIntoView({ block: 'nearest' });
  });
  reset.addEventListener('click', () => zoom(root));
  stage.addEventListener('click', (event) => { if (event.target.node) zoom(event.target.node, true); });
  stage.addEventListener('mouseover', (event) => { if (event.target.node) say(event.target.node); });
  stage.addEventListener('focusin', (event) => { if (event.target.node) say(event.target.node); });
  stage.addEventListener('keydown', (event) => {
    const node = event.target.node;
    if (!node) return;
    const beside = node.parent ? node.parent.children.filter((n) => n.element && n.element.isConnected) : [node];
    const at = beside.indexOf(node);
    const next = { ArrowUp: node.parent, ArrowDown: node.children.find((n) => n.element && n.element.isConnected), ArrowLeft: beside[at - 1], ArrowRight: beside[at + 1] }[event.key];
    if (event.key === 'Escape') zoom(root, true);
    if (!event.key.startsWith('Arrow')) return;
    event.preventDefault();
    if (next && next.element.isConnected) { event.target.tabIndex = -1; next.element.tabIndex = 0; next.element.focus(); }
  });
  show(box.dataset.measure);
})();
