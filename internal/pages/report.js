// The report of a job: the frozen form of its page, in one file. The rows are in the page, and
// report-rows.js shows their transcripts as text; the charts and the groups of failures are made
// here, and the transcripts are made as the window shows them.
import { h, set, meter, status, num, spaced, plain } from './ui.js';
import { Charts, progress, famOf } from './tasks.js';
import { changes } from './limits.js';
import { Transcript } from './transcript.js';

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

show = (to, lines, id) => {
  const tx = new Transcript('Transcript of ' + id);
  tx.on = false; // it is read from its beginning
  for (const line of lines) {
    try { tx.put(JSON.parse(line)); } catch { tx.row('think', null, h('pre', { class: 'out' }, line)); } // an odd line hides no other
  }
  tx.over();
  to.append(tx.el);
};
