// The part of a report that needs no more of a browser than elements with text: the filter, and
// transcripts as they are written. It comes first, so that whatever fails in what follows hides
// no row and no line.
const all = [...document.querySelectorAll('.row')], find = document.getElementById('find'), pick = document.getElementById('status'), count = document.getElementById('shown');
const texts = all.map(r => r.dataset.words.toLowerCase());
function filter() {
  const want = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  let n = 0;
  all.forEach((r, i) => {
    const hit = (!pick.value || r.dataset.status === pick.value) && want.every(w => texts[i].includes(w));
    if (r.hidden === hit) r.hidden = !hit;
    if (hit) n++;
  });
  count.textContent = n + ' of ' + all.length;
}
find.addEventListener('input', filter);
pick.addEventListener('change', filter);
filter();

function add(to, tag, text) {
  const e = document.createElement(tag);
  e.textContent = text; // text alone: what a model wrote stays text
  to.appendChild(e);
}
const worded = v => typeof v === 'string' ? v : JSON.stringify(v, null, 2) ?? '';
function lineOf(line) {
  try {
    const m = JSON.parse(line), content = m.message?.content;
    if (m.type === 'cut') return '… ' + m.bytes + ' bytes are in the file …';
    if (m.type !== 'assistant' && m.type !== 'user' || content === undefined) return '';
    return [content].flat().map(b => b && typeof b.text === 'string' ? b.text : worded(b)).join('\n');
  } catch { return line; } // an odd line hides no other
}
// show shows lines of a transcript; report.js has a better way.
let show = (to, lines) => lines.map(lineOf).filter(Boolean).forEach(text => add(to, 'pre', text));

async function unpack(id) {
  const packed = document.getElementById(id).textContent.trim().replaceAll('-', '+').replaceAll('_', '/');
  const raw = Uint8Array.from(atob(packed), c => c.charCodeAt(0));
  return new Response(new Blob([raw]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
}
async function unfold(row) {
  const to = row.querySelector('.transcript');
  if (!row.open || !to || to.dataset.done) return;
  to.dataset.done = '1';
  try {
    show(to, (await unpack(to.dataset.pack)).split('\n').filter(Boolean), row.dataset.id);
  } catch (e) { add(to, 'p', 'The transcript cannot be shown: ' + e); }
}
all.forEach(r => r.addEventListener('toggle', () => unfold(r)));
