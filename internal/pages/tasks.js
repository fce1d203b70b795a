// What the page of a job and report.html have in common: the numbers, the bar of progress, and
// the charts, from the tasks of a job. A chart that has nothing to show is left out.
import { h, num, short, usd, dur, roles, family, panel } from './ui.js';
import { pins } from './limits.js';
import { stack, bars, histogram, pace, spend, legend } from './charts-job.js';

export const fams = ['good', 'agent', 'limit', 'bad', 'over'], famNames = { good: 'accepted', agent: 'agent', limit: 'limit', bad: 'infrastructure', over: 'not run' };
export const famOf = s => roles[family(s)];
export const doneOf = tasks => tasks.filter(t => t.state === 'over');
// spent reads a duration as Go writes it, such as 1h2m3.5s, or a number of milliseconds.
const units = { h: 36e5, m: 6e4, s: 1e3, ms: 1, 'µs': 1e-3, us: 1e-3, ns: 1e-6 };
export function spent(d) {
  if (typeof d !== 'string') return d || 0;
  let sum = 0;
  for (const [, n, u] of d.matchAll(/([\d.]+)(ms|µs|us|ns|h|m|s)/g)) sum += n * units[u];
  return sum;
}
// task is one with its times as numbers.
export const task = t => t.usage && typeof t.usage.wall === 'string' ? { ...t, usage: { ...t.usage, wall: spent(t.usage.wall) } } : t;
const ms = t => t ? Date.parse(t) : 0;
const money = t => t.usage?.usd || t.usage?.credits || 0;
const span = ms => dur(ms).replace(/ 00[sm]$/, '');

// rateOf is how many results a minute there were in the last 10 minutes, or since the start.
export function rateOf(s, tasks, now) {
  if (s.rate_per_min != null) return s.rate_per_min;
  const from = Math.max(ms(s.started), now - 6e5), n = tasks.filter(t => ms(t.ended) > from).length;
  return now > from && n ? n / ((now - from) / 6e4) : 0;
}
const item = (k, v, u, title) => h('div', { title }, h('dt', {}, k), h('dd', { class: 'n' }, v, u ? h('span', { class: 'unit' }, ' ' + u) : null));
export function facts(s, tasks, now, over) {
  const d = doneOf(tasks), n = tasks.length, good = d.filter(t => famOf(t.status) === 'good').length, run = tasks.filter(t => t.state === 'running').length, rate = rateOf(s, tasks, now), u = s.usage || {}, budget = s.budget?.usd;
  return h('dl', {}, item('done', num(d.length), 'of ' + num(n)), d.length ? item('accepted', (100 * good / d.length).toFixed(1).replace(/\.0$/, '') + '%') : null, over ? null : item('running', num(run), s.limit ? 'of ' + num(s.limit) : ''),
    rate && !over ? item('rate', short(+rate.toPrecision(3)), '/ min', 'results of the last 10 minutes') : null, rate && !over && d.length < n ? item('left', '≈ ' + span((n - d.length) / rate * 6e4).replace(/ \d+s$/, ''), '', 'tasks that are left, at the rate of the last 10 minutes') : null,
    u.credits ? item('cost', num(u.credits), 'credits') : u.usd ? item('cost', u.usd >= 100 ? '$' + num(u.usd) : usd(u.usd), budget ? 'of $' + num(budget) : '') : null, u.turns ? item('turns', short(u.turns)) : null, u.tokens ? item('tokens', short(Object.values(u.tokens).reduce((a, b) => a + b, 0)), u.tokens.cacheRead ? short(u.tokens.cacheRead) + ' from the cache' : '') : null);
}
export function progress(s, tasks) {
  const by = {}, n = tasks.length || 1, count = st => tasks.filter(t => t.state === st).length;
  for (const t of doneOf(tasks)) by[famOf(t.status)] = (by[famOf(t.status)] || 0) + 1;
  const parts = [...fams.map(k => [k, by[k] || 0, famNames[k]]), ['work', count('running'), 'running'], ['person', count('waiting'), 'waiting for a person']], queued = count('queued');
  let x = 0;
  return [h('svg', { viewBox: '0 0 1000 10', preserveAspectRatio: 'none', role: 'img', 'aria-label': parts.filter(p => p[1]).map(p => p[1] + ' ' + p[2]).join(', ') + (queued ? ', ' + queued + ' queued' : '') }, h('rect', { class: 'm-all', width: 1000, height: 10 }), parts.map(([k, c, name]) => { const w = c ? Math.max(2, 1000 * c / n) : 0, e = c ? h('rect', { class: 'f-' + k, x, width: Math.max(1, w - 1), height: 10 }, h('title', {}, num(c) + ' ' + name)) : null; x += w; return e; })),
    legend([...fams, 'work', 'person'], { ...famNames, work: 'running', person: 'waits for a person' }, Object.fromEntries(parts)), queued ? h('span', { class: 'dim n q' }, num(queued) + ' queued') : null];
}

const widths = [200, 500, 1e3, 2e3, 5e3, 10e3, 30e3, 6e4, 3e5, 6e5, 18e5, 36e5, 6 * 36e5, 864e5];
const seconds = [.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 18000, 36000];

// runsOf is how many tasks were at work, from when each of them began and ended: at most 400 points, each
// with the highest number of its time.
function runsOf(tasks) {
  const steps = [], out = [];
  for (const t of tasks) {
    const a = ms(t.started) || (t.state === 'running' ? ms(t.since) : 0);
    if (!a) continue;
    steps.push([a, 1]);
    if (t.state !== 'running') steps.push([Math.max(a, ms(t.ended) || a + (t.usage?.wall || 0)), -1]);
  }
  steps.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const wide = steps.length ? (steps.at(-1)[0] - steps[0][0]) / 400 : 0;
  let n = 0;
  for (const [t, d] of steps) {
    n += d;
    const l = out.at(-1);
    if (l && t - l[0] <= wide) l[1] = l.n ? Math.max(l[1], n) : n; else out.push([t, n]);
    out.at(-1).n = true;
  }
  if (out.length) out.at(-1)[1] = n;
  return out;
}

export class Charts {
  constructor({ now = () => Date.now() } = {}) {
    this.now = now;
    this.stack = stack({ cls: 'c-job' }); this.bars = bars({ cls: 'c-job' });
    this.time = histogram({ cls: 'c-job', step: seconds, xfmt: v => v ? span(v * 1000) : '0' });
    this.each = histogram({ cls: 'c-job', xfmt: v => (this.credits ? '' : '$') + short(v) });
    this.pace = pace({ cls: 'c-job' });
    this.spend = spend({ cls: 'c-job', yfmt: v => (this.credits ? '' : '$') + short(v), left: 46 });
  }
  // has says which charts have something to show.
  has(s, tasks) {
    const d = doneOf(tasks), ended = d.some(t => t.ended);
    return { pace: s.pace?.length > 0 || s.running_over_time?.length > 1 || !s.ended && tasks.some(t => t.started), stack: ended, spend: ended && d.some(money), time: d.filter(t => t.usage?.wall).length > 1, each: d.filter(money).length > 1, bars: d.some(t => t.tags?.length) };
  }
  // key changes when other panels are to be shown.
  key(s, tasks) { return JSON.stringify([this.has(s, tasks), this.bin(s, tasks)]); }
  // panels are those of a page: what runs first, the numbers of each task last.
  panels(s, tasks, { why, fails }) {
    const c = this.has(s, tasks), bin = this.bin(s, tasks);
    return [c.pace && panel(s.pace?.length ? 'Running and limit' : 'Running', s.pace?.length ? 'numbers: why it changed' : null, this.pace.el, why), fails && panel('Failures', 'by first error', fails), c.stack && panel('Results', 'each bar is ' + span(bin) + ', failures at the base', this.stack.el), c.spend && panel('Cost', s.ended ? null : 'and where it ends at this rate', this.spend.el), c.time && panel('Time of tasks', 'the last bar has all that took longer', this.time.el), c.each && (!c.spend || s.ended) && panel('Cost of tasks', null, this.each.el), c.bars && panel('Outcomes by tag', null, this.bars.el)].filter(Boolean);
  }
  bin(s, tasks) {
    let a = ms(s.started) || Infinity, z = this.now();
    for (const t of tasks) if (t.ended) a = Math.min(a, ms(t.ended));
    if (s.ended) z = ms(s.ended);
    return widths.find(w => (z - a) / w <= 40) || 864e5;
  }
  draw(s, tasks) {
    const c = this.has(s, tasks), d = doneOf(tasks), end = s.ended ? ms(s.ended) : this.now();
    this.credits = d.some(t => t.usage?.credits);
    let first = ms(s.started);
    const by = d.filter(t => t.ended).map(t => [ms(t.ended), t]).sort((a, b) => a[0] - b[0]);
    if (!first || by[0]?.[0] < first) first = by[0]?.[0] ?? end;
    if (c.stack) {
      const w = this.bin(s, tasks), a0 = Math.floor(first / w) * w, bins = [];
      for (let a = a0; a < Math.max(end, a0 + w); a += w) bins.push({ at: a, to: a + w, counts: {} });
      for (const [t, x] of by) { const b = bins[Math.floor((t - a0) / w)], f = famOf(x.status); if (b) b.counts[f] = (b.counts[f] || 0) + 1; }
      this.stack.show({ bins, now: s.ended ? Infinity : end, order: [...fams].reverse(), names: famNames, label: 'Results every ' + span(w) + ', by family' });
    }
    if (c.bars) {
      const tags = new Map();
      for (const t of d) for (const g of t.tags?.length ? t.tags : ['no tag']) { const row = tags.get(g) || { name: g, counts: {}, n: 0 }, f = famOf(t.status); row.counts[f] = (row.counts[f] || 0) + 1; row.n++; tags.set(g, row); }
      this.bars.show({ rows: [...tags.values()].sort((a, b) => b.n - a.n || (a.name < b.name ? -1 : 1)), order: fams, names: famNames, label: 'Outcomes by tag' });
    }
    if (c.time) this.time.show({ values: d.filter(t => t.usage?.wall).map(t => t.usage.wall / 1000), label: 'Time of tasks' });
    if (c.each) this.each.show({ values: d.map(money).filter(Boolean), label: 'Cost of tasks' });
    if (c.pace) {
      const ch = s.pace || [], run = s.running_over_time ? s.running_over_time.map(p => Array.isArray(p) ? p : [ms(p.at), p.n]) : s.ended ? [] : runsOf(tasks), from = Math.min(first, ms(ch[0]?.at) || Infinity, run[0]?.[0] ?? Infinity);
      if (run.length && !s.ended) run.push([end, tasks.filter(t => t.state === 'running').length]);
      this.pace.show({ limit: ch.map(x => [ms(x.at), x.to]), running: run, from, to: Math.max(end, from + 1000), bands: (s.starved_over || []).map(b => [ms(b.from), b.to ? ms(b.to) : end, 'the machine had too little processor time']), marks: pins(ch, -1).slice(1), label: 'Running attempts' + (ch.length ? ' and their limit, with ' + ch.length + ' changes' : '') });
    }
    if (c.spend) {
      const sum0 = d.reduce((x, t) => x + money(t), 0), all = this.credits ? s.usage?.credits : s.usage?.usd, scale = all && sum0 ? all / sum0 : 1, pts = [[first, 0]], every = Math.ceil(by.length / 150), rate = rateOf(s, tasks, end), left = tasks.length - d.length;
      let sum = 0;
      by.forEach(([t, x], i) => { sum += money(x) * scale; if (i % every === 0 || i === by.length - 1) pts.push([t, sum]); });
      if (!s.ended) pts.push([end, sum]);
      this.spend.show({ points: pts, from: first, budget: s.budget?.usd, end: !s.ended && rate && left ? [end + left / rate * 6e4, sum * tasks.length / d.length] : null, label: 'Cost so far ' + (this.credits ? num(sum) + ' credits' : usd(sum)) });
    }
  }
}
