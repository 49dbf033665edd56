// The page's behaviour: the theme, the search of the sites, and keys. The page is whole
// without it.
'use strict';
(function () {
  const root = document.documentElement;

  // ---- theme: as the system has it, light, dark ----

  const themes = ['system', 'light', 'dark'];
  const button = document.getElementById('theme');

  function stored() {
    try { return localStorage.getItem('memtrace-theme'); } catch { return null; } // not every browser stores for files
  }

  function setTheme(theme) {
    if (theme === 'system') delete root.dataset.theme; else root.dataset.theme = theme;
    button.textContent = 'Theme: ' + theme;
    button.dataset.value = theme;
    try { localStorage.setItem('memtrace-theme', theme); } catch { /* only this page, then */ }
  }

  function nextTheme() {
    setTheme(themes[(themes.indexOf(button.dataset.value) + 1) % themes.length]);
  }

  setTheme(themes.includes(stored()) ? stored() : 'system');
  button.addEventListener('click', nextTheme);

  // ---- sites: search, open and close ----

  const search = document.getElementById('search');
  const found = document.getElementById('found');
  const sites = Array.from(document.querySelectorAll('.site'));
  const texts = sites.map((site) => site.textContent.toLowerCase());

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    sites.forEach((site, i) => {
      site.hidden = !words.every((word) => texts[i].includes(word));
      if (!site.hidden) count++;
      mark(site, words);
    });
    found.textContent = words.length ? count + ' of ' + sites.length : '';
  }

  // mark shows the frames that hold one of the words.
  function mark(site, words) {
    for (const line of site.querySelectorAll('.stack .name, summary .leaf')) {
      const text = line.textContent;
      const at = words.map((word) => [text.toLowerCase().indexOf(word), word.length]).filter(([start]) => start >= 0);
      line.replaceChildren(text);
      if (!at.length) continue;
      const [start, length] = at[0];
      const hit = document.createElement('mark');
      hit.textContent = text.slice(start, start + length);
      line.replaceChildren(text.slice(0, start), hit, text.slice(start + length));
    }
  }

  function toggleAll() {
    const shown = sites.filter((site) => !site.hidden);
    const open = shown.some((site) => !site.open);
    for (const site of shown) site.open = open;
  }

  if (search) search.addEventListener('input', filter);

  // ---- keys ----

  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === search) {
      if (event.key === 'Escape') { search.value = ''; filter(); search.blur(); }
      return;
    }
    if (event.target.matches('input, textarea, select')) return;
    if (event.key === '/' && search) { event.preventDefault(); search.focus(); search.scrollIntoView({ block: 'center' }); }
    if (event.key === 't') nextTheme();
    if (event.key === 'e') toggleAll();
  });
})();
