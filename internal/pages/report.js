// The report of a job: the frozen form of its page, in one file. The rows are in the page; the
// charts, the groups of failures and the transcripts are made here.
import { h, set, meter, status, num, spaced, plain } from './ui.js';
import { Charts, progress, famOf } from './tasks.js';
import { changes } from './limits.js';
import { Transcript } from './transcript.js';

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

const job = JSON.parse(document.body.dataset.job);
const tasks = all.map(r => ({ id: r.dataset.id, state: 'over', status: r.dataset.status, ended: r.dataset.ended, tags: JSON.parse(r.dataset.tags || '[]'), usage: { wall: +r.dataset.wall, usd: +r.dataset.usd, credits: +r.dataset.credits } }));

function failures() {
  const groups = new Map();
  all.forEach(r => {
    if (r.dataset.status === 'accepted') return;
    const error = r.dataset.error || '', key = r.dataset.status + '\n' + error;
    (groups.get(key) || groups.set(key, { status: r.dataset.status, error, n: 0 }).get(key)).n++;
  });
  const list = [...groups.values()].sort((a, b) => b.n - a.n).slice(0, 50), top = list[0]?.n;
  const only = g => { pick.value = g.status; find.value = g.error.split(/[^\w ]/)[0].trim().slice(0, 24); filter(); find.scrollIntoView({ block: 'nearest' }); };
  return list.length ? h('div', { class: 'fails' }, list.map(g => h('button', { class: 'frow', type: 'button', title: plain(g.error || spaced(g.status)), on: { click: () => only(g) } }, status(g.status), h('span', { class: 'err' }, g.error), meter(g.n / top, 'm-' + famOf(g.status)), h('b', { class: 'n' }, num(g.n))))) : null;
}
if (tasks.length) {
  const charts = new Charts({ now: () => Date.parse(job.ended) });
  set(document.getElementById('progress'), progress(job, tasks));
  set(document.getElementById('charts'), charts.panels(job, tasks, { why: job.pace?.length > 1 ? changes(job.pace, 5) : null, fails: failures() }));
  charts.draw(job, tasks);
}

async function unpack(id) {
  const packed = document.getElementById(id).textContent.trim().replaceAll('-', '+').replaceAll('_', '/');
  const raw = Uint8Array.from(atob(packed), c => c.charCodeAt(0));
  return new Response(new Blob([raw]).stream().pipeThrough(new DecompressionStream('gzip'))).text();
}
async function unfold(row) {
  const to = row.querySelector('.transcript');
  if (!row.open || !to || to.dataset.done) return;
  to.dataset.done = '1';
  const tx = new Transcript('Transcript of ' + row.dataset.id);
  tx.on = false; // it is read from its beginning
  try {
    for (const line of (await unpack(to.dataset.pack)).split('\n')) {
      if (!line) continue;
      try { tx.put(JSON.parse(line)); } catch { tx.row('think', null, h('pre', { class: 'out' }, line)); } // an odd line hides no other
    }
    tx.over();
  } catch (e) { tx.row('think', null, h('p', {}, 'The transcript cannot be shown: ' + e)); }
  to.append(tx.el);
}
all.forEach(r => r.addEventListener('toggle', () => unfold(r)));
