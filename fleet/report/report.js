'use strict';
const rows = [...document.querySelectorAll('.row')];
const find = document.getElementById('find'), status = document.getElementById('status'), shown = document.getElementById('shown');
const words = rows.map(r => r.dataset.words.toLowerCase());
function filter() {
  const want = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  let n = 0;
  rows.forEach((r, i) => {
    const hit = (!status.value || r.dataset.status === status.value) && want.every(w => words[i].includes(w));
    if (r.hidden === hit) r.hidden = !hit;
    if (hit) n++;
  });
  shown.textContent = n + ' of ' + rows.length;
}
find.addEventListener('input', filter);
status.addEventListener('change', filter);
filter();

function add(to, tag, text, cls) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text; // text alone: what a model wrote stays text
  if (cls) e.className = cls;
  to.appendChild(e);
  return e;
}
function fold(to, title, text) {
  const d = add(to, 'details', undefined, 'tool');
  add(d, 'summary', title);
  diff(add(d, 'pre'), text);
}
function diff(pre, text) {
  if (!/^(diff --git|@@ |--- )/m.test(text)) { pre.textContent = text; return; }
  for (const line of text.split('\n')) add(pre, 'div', line || ' ', line[0] === '+' ? 'add' : line[0] === '-' ? 'del' : '');
}
function plain(v) {
  if (typeof v === 'string') return v;
  if (Array.isArray(v)) return v.map(b => b && typeof b.text === 'string' ? b.text : JSON.stringify(b)).join('\n');
  return v === undefined ? '' : JSON.stringify(v, null, 2);
}
function show(to, m) {
  if (m === null || typeof m !== 'object') return add(to, 'pre', plain(m));
  const content = m.message && m.message.content;
  if (m.type === 'cut') return add(to, 'p', '… ' + m.bytes + ' bytes are in the file …', 'dim');
  if (m.type !== 'assistant' && m.type !== 'user' || content === undefined) return;
  for (const b of Array.isArray(content) ? content : [content]) block(to, b);
}
function block(to, b) { // one that is not as expected shows as it is
  const type = b && b.type;
  if (type === 'text' && typeof b.text === 'string') add(to, 'pre', b.text);
  else if (type === 'thinking' && typeof b.thinking === 'string') fold(to, 'thinking', b.thinking);
  else if (type === 'tool_use') fold(to, plain(b.name) + ' ' + plain(b.input).slice(0, 80), plain(b.input));
  else if (type === 'tool_result') fold(to, b.is_error ? 'result: error' : 'result', plain(b.content));
  else add(to, 'pre', plain(b));
}
async function unpack(id) {
  const packed = document.getElementById(id).textContent.trim().replaceAll('-', '+').replaceAll('_', '/');
  const bytes = Uint8Array.from(atob(packed), c => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
}
async function open(row) {
  const to = row.querySelector('.transcript');
  if (!row.open || !to || to.dataset.done) return;
  to.dataset.done = '1';
  let lines;
  try {
    lines = (await unpack(to.dataset.pack)).split('\n');
  } catch (e) { return add(to, 'p', 'The transcript cannot be shown: ' + e); }
  for (const line of lines) {
    if (!line) continue;
    const part = document.createElement('div');
    try { show(part, JSON.parse(line)); } catch { part.textContent = ''; add(part, 'pre', line); } // an odd line hides no other
    if (part.children.length) to.appendChild(part);
  }
}
rows.forEach(r => r.addEventListener('toggle', () => open(r)));
document.querySelectorAll('pre.diff').forEach(p => { const t = p.textContent; p.textContent = ''; diff(p, t); });
