package ui

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/agent-troupe/troupe/runtime"
)

// history answers with what the charts show of the past.
func (w *Window) history(rw http.ResponseWriter, r *http.Request, _ caller) {
	window := map[string]time.Duration{"": 15 * time.Minute, "15m": 15 * time.Minute, "3h": 3 * time.Hour, "24h": 24 * time.Hour}
	d, ok := window[r.URL.Query().Get("window")]
	if !ok {
		http.Error(rw, "window is 15m, 3h or 24h", http.StatusBadRequest)
		return
	}
	host, named := w.there(rw, r)
	switch {
	case named && host == nil: // it was answered
	case named:
		h, err := host.History(r.Context(), d)
		if err != nil && !errors.Is(err, ErrUnsupported) {
			refuse(rw, err)
			return
		}
		writeJSON(rw, h)
	default:
		writeJSON(rw, w.allHistory(r.Context(), d))
	}
}

// allHistory is the history of this program and of all hosts that have one.
func (w *Window) allHistory(ctx context.Context, d time.Duration) runtime.History {
	sum, hosts := w.rt.History(d), w.others.all(ctx, w)
	all := answersOf(ctx, w, "history "+d.String(), hosts, func(ctx context.Context, h Host) (runtime.History, error) { return h.History(ctx, d) })
	for i := range all {
		if all[i].StepMS != sum.StepMS {
			continue
		}
		late := int(sum.At.Sub(all[i].At).Round(time.Duration(sum.StepMS)*time.Millisecond).Milliseconds() / sum.StepMS)
		to, from := seriesOf(&sum.Series), seriesOf(&all[i].Series)
		for k := range to {
			*to[k] = added(*to[k], *from[k], late)
		}
	}
	return sum
}

func seriesOf(s *runtime.HistorySeries) []*runtime.HistoryValues {
	return []*runtime.HistoryValues{&s.Running, &s.Gates, &s.RSS, &s.Turns, &s.Tokens, &s.USD, &s.Restarts, &s.Refused}
}

// added is the sum of two series whose ends are so many intervals apart. Where one has no value the
// other's counts.
func added(to, more runtime.HistoryValues, late int) runtime.HistoryValues {
	for i := range to {
		k := len(more) - len(to) + i + late
		switch {
		case k < 0 || k >= len(more) || math.IsNaN(more[k]):
		case math.IsNaN(to[i]):
			to[i] = more[k]
		default:
			to[i] += more[k]
		}
	}
	return to
}

// options answers with the options of a session as they were resolved, without secrets. They
// have prompts.
func (w *Window) options(rw http.ResponseWriter, r *http.Request, _ caller) {
	if s := w.here(rw, r, "options"); s != nil {
		writeJSON(rw, s.Options())
	}
}
