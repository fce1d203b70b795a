// The jobs of this host. One alone is opened at once.
import { h, morph, num, usd, dur, state, meter, empty } from './ui.js';
import { world, now, jobs as fetched, jobAddress } from './api.js';
import { head, sub, calm } from './parts.js';

export const load = () => fetched();

export default function jobs(root, p, go) {
  if (world.jobs.length === 1) { location.replace(jobAddress(world.jobs[0].job, world.jobs[0].host_id)); return { title: 'Jobs' }; }
  const box = h('div', { class: 'joblist' });
  const card = j => {
    const s = j.states || {}, all = j.total || Object.values(s).reduce((a, b) => a + b, 0), good = j.byStatus?.accepted || 0, over = s.over || 0;
    return h('a', { class: 'panel jobcard', href: jobAddress(j.job, j.host_id) }, h('header', {}, h('h2', { class: 'nm' }, j.job), state(j.paused ? 'queued' : j.live === false ? 'over' : 'running', j.paused ? 'paused' : j.live === false ? 'not running' : 'running'), h('span', { class: 'side n' }, [j.host_id && 'at ' + j.host_id, j.started && j.live !== false ? 'for ' + dur(now() - Date.parse(j.started)) : ''].filter(Boolean).join(' · '))),
      meter(all ? over / all : 0, 'm-good'), h('p', { class: 'dim n' }, [num(over) + ' of ' + num(all) + ' done', over ? Math.round(100 * good / over) + '% accepted' : '', s.running && j.live !== false ? num(s.running) + ' running' : '', j.waiting || s.waiting ? num(j.waiting || s.waiting) + ' wait for a person' : '', j.usage?.usd ? usd(j.usage.usd) : ''].filter(Boolean).join(' · ')));
  };
  const draw = () => morph(box, world.jobs.length ? world.jobs.map(card) : empty('No job', 'A job appears here when fleet.Run or troupe batch --ui runs one in this process.', h('pre', { class: 'cmd' }, 'troupe batch tasks.jsonl --ui')));
  root.append(head('Jobs', sub(world.jobs.length > 1 ? num(world.jobs.length) + ' jobs' : '')), box);
  draw();
  const soon = calm(draw, 500);
  return { title: 'Jobs', async resync() { await fetched().catch(() => {}); draw(); }, tick(type) { if (type === 'job' || type === 'tick') soon(); } };
}
