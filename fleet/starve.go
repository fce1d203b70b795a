package fleet

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// When a machine is starved, so that agents' time-outs are its own doing: a timer is late,
// a task waits for a processor almost always, or the container is throttled.
const (
	sampleEvery    = time.Second
	starvedLag     = 250 * time.Millisecond
	starvedShare   = 90   // percent of the last 10 s in which a task waited, as the kernel reports it
	starvedByQuota = 0.25 // of the time
)

// gauge watches the machine while a job adapts its pace. Its timer alone uses it.
type gauge struct {
	starvation
	due       time.Time // of the next sample
	throttled int64     // microseconds, at the last one
}

// watch takes a sample every second until the job is over.
func (e *env) watch(g *gauge) {
	g.due = e.clock.Now().Add(sampleEvery)
	e.clock.AfterFunc(sampleEvery, func() {
		if e.ctx.Err() != nil {
			return
		}
		if own := e.job.Pace.Starved; own != nil {
			var says bool
			_ = guard("Pace.Starved", func() error { says = own(); return nil })
			if g.set(e.clock.Now(), says) {
				e.post(starving{says})
			}
		} else if g.sample(e.clock.Now(), pressure(), throttled()) {
			e.post(starving{g.on})
		}
		e.watch(g)
	})
}

// sample reports whether the machine is starved or not any more.
func (g *gauge) sample(now time.Time, waiting float64, throttled int64) (news bool) {
	lag := now.Sub(g.due)
	quota := float64(throttled-g.throttled) / float64((sampleEvery + max(lag, 0)).Microseconds())
	first := g.throttled == 0
	g.throttled = throttled
	return g.set(now, lag > starvedLag || waiting >= starvedShare || !first && quota >= starvedByQuota)
}

// pressure is the kernel's figure of processor pressure; 0 on systems without it.
func pressure() float64 {
	text, _ := os.ReadFile("/proc/pressure/cpu")
	return pressureIn(string(text))
}

func pressureIn(text string) float64 {
	_, after, _ := strings.Cut(text, "some avg10=")
	share, _, _ := strings.Cut(after, " ")
	f, _ := strconv.ParseFloat(share, 64) // 0 if it is not a number
	return f
}

// throttled is for how many microseconds the container has been denied a processor; 0
// where that is not known.
func throttled() int64 {
	text, _ := os.ReadFile("/sys/fs/cgroup/cpu.stat")
	return throttledIn(string(text))
}

func throttledIn(text string) int64 {
	_, after, _ := strings.Cut(text, "throttled_usec ")
	count, _, _ := strings.Cut(after, "\n")
	n, _ := strconv.ParseInt(count, 10, 64) // 0 if it is not a number
	return n
}
