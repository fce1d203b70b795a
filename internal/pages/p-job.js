// A job: progress, charts, failures, tasks. The charts and groups are those of tasks.js, which
// makes report.html, too.
import { h, set, morph, say, num, usd, dur, clock, exact, state, status, glyph, meter, kbd, empty, panel, List, plain, spaced } from './ui.js';
import { world, now, get, post, seg, address, jobAddress, jobOf } from './api.js';
import { live, act, toast, narrow, calm } from './parts.js';
import { asker, retune } from './steer.js';
import { changes } from './limits.js';
import { Charts, facts, progress, famOf, doneOf, task } from './tasks.js';

export async function load(p) {
  const at = 'api/jobs/' + seg(p.id), [job, tasks] = await Promise.all([get(at), follow(at)]);
  return { job, ...tasks };
}
// follow fetches all tasks, page by page; from a cursor on, only those that changed.
async function follow(at, cursor = '') {
  const tasks = [];
  for (;;) {
    const d = await get(at + '/tasks?limit=500' + (cursor ? '&after=' + seg(cursor) : ''));
    tasks.push(...(d.tasks || []).map(task));
    if (d.cursor) cursor = String(d.cursor);
    if (!d.more || !d.tasks?.length) return { tasks, cursor };
  }
}

const order = { waiting: 0, running: 1, over: 2, queued: 3 };
const columns = [
  ['id', 'task', 'minmax(120px,1.1fr)', 'nm'], ['st', 'status', '110px', 'st'], ['err', 'error, or what it does', 'minmax(0,2fr)', 'err'],
  ['tries', 'tries', '40px', 'n', t => t.attempts > 1], ['time', 'time', '76px', 'n', t => t.usage?.wall || t.since], ['cost', 'cost', '62px', 'n', t => t.usage?.usd || t.usage?.credits], ['ended', 'ended', '70px', 'n', t => t.ended],
];

export default function job(root, p, go, data) {
  let s = data.job, cursor = data.cursor, shown = [];
  const at = 'api/jobs/' + seg(p.id), byID = new Map(data.tasks.map(t => [t.id, t]));
  const tasks = () => [...byID.values()];
  const nums = h('div', { class: 'nums' }), prog = h('div', { class: 'prog' }), running = h('div', { class: 'rtab' }), fails = h('div', { class: 'fails' }), title = h('span', {}), why = h('div', {}), charts = new Charts({ now });
  const money = t => t.usage?.credits ? num(t.usage.credits) + ' cr' : t.usage?.usd ? usd(t.usage.usd) : '';

  const drawFacts = () => { const all = tasks(); morph(nums, facts(s, all, now())); morph(prog, progress(s, all)); morph(title, state(s.stop || s.live === false ? 'over' : s.paused ? 'queued' : 'running', s.stop ? 'stopped: ' + spaced(s.stop.reason || '') : s.live === false ? 'not running' : s.paused ? 'paused' : 'running')); };
  const drawCharts = () => { charts.draw(s, tasks()); set(why, s.pace?.length > 1 ? changes(s.pace, 5) : null); };
  const drawRun = () => {
    const r = tasks().filter(t => t.state === 'running' && s.live !== false).sort((a, b) => Date.parse(a.since) - Date.parse(b.since)), t0 = now();
    morph(running, r.length ? r.slice(0, 9).map(t => h('a', { href: t.session ? address({ id: t.session, host: s.host_id }) : jobAddress(p.id, s.host_id, t.id), class: 'rrow' }, h('span', { class: 'r-work' }, glyph('work')), h('span', { class: 'nm' }, t.id), h('span', { class: 'dim' }, t.attempts > 1 ? 'attempt ' + t.attempts : ''), h('code', {}, t.doing || ''), h('span', { class: 'n', title: t.since ? exact(t.since) : null }, t.since ? dur(t0 - Date.parse(t.since)) : ''), h('span', { class: 'n dim' }, money(t)))) : h('p', { class: 'dim none' }, 'No task runs.'), r.length > 9 ? h('p', { class: 'dim none' }, 'and ' + num(r.length - 9) + ' more, all younger') : null);
  };
  const drawFails = () => {
    const g = new Map();
    for (const t of byID.values()) if (t.state === 'over' && t.status !== 'accepted') { const k = t.status + '\n' + (t.error || ''); (g.get(k) || g.set(k, { t, n: 0 }).get(k)).n++; }
    const all = [...g.values()].sort((a, b) => b.n - a.n).slice(0, 50), most = all[0]?.n || 1;
    set(fails, all.length ? all.map(({ t, n }) => h('button', { class: 'frow', type: 'button', title: t.error || t.status, on: { click: () => { find.value = 'status:' + t.status + ' ' + (t.error || '').split(/[^\w ]/)[0].trim().slice(0, 24); filter(); tbl.box.scrollIntoView({ block: 'nearest' }); } } }, status(t.status), h('span', { class: 'err' }, t.error || ''), meter(n / most, 'm-' + famOf(t.status)), h('b', { class: 'n' }, num(n)))) : empty('No failures', doneOf(tasks()).length ? 'Every task that is over was accepted.' : 'No task is over yet.'));
  };

  const find = h('input', { class: 'find', type: 'search', placeholder: 'Filter tasks: words, status:rejected, state:queued', 'aria-label': 'Filter tasks', autocomplete: 'off', spellcheck: 'false', value: p.q || '' }), cnt = h('span', { class: 'dim n', role: 'status' }), drawer = h('aside', { class: 'drawer', hidden: true, 'aria-label': 'Task', tabindex: -1 });
  const hdr = h('div', { class: 'jrow shead', role: 'row' });
  const tbl = new List({
    id: 'tasks', label: 'Tasks', cols: 7, head: () => hdr, height: () => narrow() ? 50 : 30, open: t => t.session && t.state === 'running' ? go(address({ id: t.session, host: s.host_id })) : show(t), key: t => t.id,
    row: () => { const r = h('div', { class: 'jrow' }, shown.map(c => h('span', { class: c[3] + ' c-' + c[0], role: 'gridcell' }))); r.c = Object.fromEntries(shown.map((c, i) => [c[0], r.children[i]])); return r; },
    fill: (r, t) => {
      const c = r.c, k = t.status && t.state === 'over' ? t.status : t.state;
      say(c.id, t.id); c.id.title = plain(t.id);
      if (c.st.s !== k) { c.st.s = k; set(c.st, t.state === 'over' && t.status ? status(t.status) : state(t.state)); }
      say(c.err, t.state === 'running' ? t.doing || '' : t.error || '');
      if (c.tries) say(c.tries, t.attempts ? '×' + t.attempts : '');
      if (c.time) say(c.time, t.state === 'running' && t.since && s.live !== false ? dur(now() - Date.parse(t.since)) : t.usage?.wall ? dur(t.usage.wall) : '');
      if (c.cost) say(c.cost, money(t));
      if (c.ended) { say(c.ended, t.ended ? clock(Date.parse(t.ended)) : ''); c.ended.title = t.ended ? exact(t.ended) : ''; }
    },
  });
  const filter = () => {
    const l = tasks(), next = columns.filter(c => !c[4] || l.some(c[4]));
    if (next.length !== shown.length) { shown = next; tbl.box.style.setProperty('--cols', shown.map(c => c[2]).join(' ')); tbl.box.setAttribute('aria-colcount', shown.length); tbl.forget(); set(hdr, shown.map(c => h('span', { class: c[3] === 'n' ? 'n' : '', role: 'columnheader' }, c[1]))); }
    const terms = find.value.toLowerCase().split(/\s+/).filter(Boolean), out = l.filter(t => terms.every(x => x.startsWith('status:') ? t.status === x.slice(7) : x.startsWith('state:') ? t.state === x.slice(6) : (t.id + ' ' + (t.error || '') + ' ' + (t.tags || []).join(' ')).toLowerCase().includes(x)));
    tbl.show(out.sort((a, b) => order[a.state] - order[b.state] || (Date.parse(b.ended) || 0) - (Date.parse(a.ended) || 0)));
    say(cnt, num(out.length) + ' of ' + num(l.length));
  };
  find.addEventListener('input', filter);

  const show = async t => {
    const { Transcript } = await import('./transcript.js'), path = at + '/tasks/' + seg(t.id), tx = new Transcript('Transcript of ' + t.id, { now, live });
    drawer.hidden = false;
    drawer.tx = tx;
    set(drawer, h('header', {}, h('h2', { class: 'nm' }, t.id), t.status && t.state === 'over' ? status(t.status) : state(t.state), h('span', { class: 'grow' }),
      t.state === 'over' ? act('Requeue', 'u', async () => { await post(path + '/requeue'); toast('Asked: ' + t.id + ' starts anew.'); }) : asker('Cancel…', '', () => ({ title: 'Cancel ' + t.id, text: 'The task ends as canceled; what it does now is given up.', button: 'Cancel the task', danger: true, send: () => post(path + '/cancel'), done: () => toast('Asked to cancel ' + t.id + '.') }), 'danger'),
      h('button', { class: 'btn', type: 'button', on: { click: hide } }, 'Close', kbd('Esc'))), t.error ? h('pre', { class: 'out bad' }, t.error) : null, h('p', { class: 'dim n' }, [t.attempts ? '×' + t.attempts : 'not started', t.usage?.wall ? dur(t.usage.wall) : '', money(t), t.transcript].filter(Boolean).join(' · ')), tx.el);
    drawer.focus();
    if (!world.content) return set(tx.box, empty('Content is not shown', 'This window was opened without Access.Content.'));
    if (!t.attempts) return set(tx.box, empty('No transcript yet', 'The task is ' + t.state + '.'));
    // The transcript comes in pieces from its beginning; what fits is shown, the rest on demand.
    let next = 0;
    tx.on = false;
    const rest = act('More of it', '', () => piece(), '', true);
    const piece = async () => {
      const d = await get(path + '/transcript?at=' + next);
      if (drawer.tx !== tx) return;
      (d.lines || []).forEach(m => tx.put(m));
      next = d.next;
      if (next == null) { rest.remove(); if (t.state === 'over') tx.over(); } else tx.scroll.append(rest);
      if (!tx.box.firstChild) set(tx.box, empty('Nothing was said', 'The transcript has no message.'));
    };
    await piece().catch(e => set(tx.box, empty('No transcript', e.message)));
  };
  const hide = () => { drawer.hidden = true; drawer.tx = null; tbl.box.focus(); };

  const toggle = async () => { await post(at + (s.paused ? '/resume' : '/pause')); toast('Asked: ' + (s.paused ? 'resume.' : 'pause. What runs goes on, nothing starts.')); };
  const pause = act('', 'p', toggle), named = () => { set(pause, s.paused ? 'Resume' : 'Pause', world.steer ? kbd('p') : null); acts.hidden = s.live === false; };
  const cancel = () => ({ title: 'Cancel ' + s.job, text: 'Tasks that run are given up; those that wait do not start. Results so far stay.', button: 'Cancel the job', danger: true, fields: [{ name: 'confirm', label: 'Name of the job', required: true, hint: 'Type ' + plain(s.job) + ' to confirm.', valid: v => v === s.job }], send: v => post(at + '/cancel', v), done: () => toast('Asked to cancel the job.') });
  const acts = h('span', { class: 'acts' }, pause, asker('Retune…', '', () => retune(s.job, at + '/retune', s.limit ?? '')), asker('Cancel…', '', cancel, 'danger'));
  named();
  const start = s.started ? Date.parse(s.started) : 0;
  root.append(h('header', { class: 'page' }, world.jobs.length > 1 ? h('div', { class: 'crumbs' }, h('a', { href: '#/jobs' }, 'Jobs')) : null, h('div', { class: 'title' }, h('h1', {}, s.job), title, h('span', { class: 'dim n', title: start ? exact(start) : null }, [s.host, s.pid && 'pid ' + s.pid].filter(Boolean).join(' · '), start ? live(() => s.live === false ? '' : ' · for ' + dur(now() - start)) : null), h('span', { class: 'grow' }), acts)),
    nums, prog);
  // The panels are made again only when another chart has something to show: making them takes
  // the charts out of those that are there.
  const grid = h('div', { class: 'charts' });
  let drawn = '';
  const slots = () => {
    const key = charts.key(s, tasks());
    if (key !== drawn) { drawn = key; set(grid, charts.panels(s, tasks(), { why, fails })); }
  };
  root.append(grid, panel('Running now', 'longest first', running), h('section', { class: 'tasks', 'aria-label': 'Tasks' }, h('header', { class: 'title' }, h('h2', {}, 'Tasks'), cnt), h('div', { class: 'tools' }, find), tbl.box), drawer);
  const all = () => { drawFacts(); slots(); drawCharts(); drawRun(); drawFails(); };
  all(); filter();
  if (p.more) { const t = byID.get(p.more); if (t) show(t); }
  // New forms of tasks take the place of the old ones; new rows come with the next filter.
  let fetching = false;
  const more = calm(async () => {
    if (fetching) return;
    fetching = true;
    try { const d = await follow(at, cursor); cursor = d.cursor; d.tasks.forEach(t => byID.set(t.id, t)); table(); } catch { /* the next event asks again */ } finally { fetching = false; }
  }, 1000);
  const table = calm(() => { tbl.swap(t => byID.get(t.id)); say(cnt, num(tbl.items.length) + ' of ' + num(byID.size)); if (tbl.items.length < byID.size && !find.value && tbl.el.scrollTop === 0 && tbl.at < 0) filter(); drawFacts(); drawRun(); }, 500);
  const charted = calm(() => { slots(); drawCharts(); if (!fails.matches(':hover, :focus-within')) drawFails(); }, 5000);
  // gone is a job that its program does not have any more.
  const gone = e => { if (e.status === 404 && s.live !== false) { s = { ...s, live: false }; named(); all(); } return s; };
  let n = 0;
  return {
    title: s.job, search: find,
    async resync() { s = await get(at).catch(gone); cursor = ''; more(); },
    tick(type, d) {
      const mine = d?.job === s.job && (d.host_id || '') === (s.host_id || '');
      if (type === 'job' && mine) { s = jobOf(s, d); named(); drawFacts(); charted(); }
      if (type === 'task' && mine) { for (const t of d.tasks || []) byID.set(t.id, task({ ...byID.get(t.id), ...t })); table(); charted(); }
      if (type === 'tick') { drawFacts(); drawRun(); tbl.refresh(); if (++n % 20 === 0 && s.live !== false) { get(at).then(x => { s = x; charted(); }, gone); } }
    },
    key: e => e.key === 'Escape' && !drawer.hidden ? (hide(), true) : !drawer.hidden && drawer.contains(document.activeElement) && drawer.tx?.key(e) ? true : e.key === 'Escape' && find.value ? (find.value = '', filter(), true) : tbl.key_(e),
  };
}
