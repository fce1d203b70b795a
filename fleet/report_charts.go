package fleet

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
)

// chart is a drawing of 400 by 180, whose ground is at 150. Above roof is its legend.
type chart struct {
	Title  string
	Axis   bool // the ground is drawn
	Rects  []rect
	Path   string
	Labels []label
}

type rect struct {
	Class      string
	X, Y, W, H float64
	Title      string
}

type label struct {
	X, Y   float64
	Anchor string
	Text   string
}

const (
	chartWidth = 400.0
	ground     = 150.0
	roof       = 22.0
	buckets    = 20
)

// charts are those of the report.
func charts(all []*TaskResult) []chart {
	if len(all) == 0 {
		return nil
	}
	drawn := []chart{
		outcomes(all),
		histogram("Time of tasks", all, func(t *TaskResult) float64 { return time.Duration(t.Usage.Wall).Seconds() },
			func(v float64) string { return onAxis(time.Duration(v * float64(time.Second))) }),
		histogram("Cost of tasks", all, func(t *TaskResult) float64 { return t.Usage.USD + t.Usage.Credits },
			func(v float64) string { return amount(all, v) }),
		concurrency(all),
	}
	return slices.DeleteFunc(drawn, func(c chart) bool { return len(c.Rects) == 0 && c.Path == "" })
}

// onAxis is a time that differs from its half.
func onAxis(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return rounded(d)
}

// amount is a cost in the unit that the results have.
func amount(all []*TaskResult, v float64) string {
	if slices.ContainsFunc(all, func(t *TaskResult) bool { return t.Usage.Credits > 0 }) {
		return cost(Usage{Credits: v})
	}
	return cost(Usage{USD: v})
}

// outcomes has a bar for each tag, or one for all tasks without tags.
func outcomes(all []*TaskResult) chart {
	const most = 6
	counts, total := map[string]map[Family]int{}, map[string]int{}
	for _, t := range all {
		tags := t.Tags
		if len(tags) == 0 {
			tags = []string{"no tag"}
		}
		for _, tag := range tags {
			if counts[tag] == nil {
				counts[tag] = map[Family]int{}
			}
			counts[tag][t.Family]++
			total[tag]++
		}
	}
	var tags []string
	for tag := range total {
		tags = append(tags, tag)
	}
	slices.SortFunc(tags, func(a, b string) int {
		if total[a] != total[b] {
			return total[b] - total[a]
		}
		return strings.Compare(a, b)
	})
	c := chart{Title: "Outcomes by tag"}
	for i, tag := range tags[:min(len(tags), most)] {
		x, y := 100.0, float64(i)*24+4
		c.Labels = append(c.Labels, label{94, y + 13, "end", clip(tag, 14)}, label{398, y + 13, "end", fmt.Sprint(total[tag])})
		for _, f := range []Family{familySuccess, familyAgent, familyLimit, familyInfrastructure, familyNotRun} {
			n := counts[tag][f]
			w := 270 * float64(n) / float64(total[tag])
			if n > 0 {
				c.Rects = append(c.Rects, rect{string(f), x, y, w, 18, fmt.Sprintf("%s: %d %s", tag, n, f)})
			}
			x += w
		}
	}
	if len(tags) > most {
		c.Labels = append(c.Labels, label{0, 168, "start", fmt.Sprintf("and %s", shown.Count(len(tags)-most, "more tag"))})
	}
	return c
}

func histogram(title string, all []*TaskResult, value func(*TaskResult) float64, show func(float64) string) chart {
	c := chart{Title: title, Axis: true}
	top := 0.0
	for _, t := range all {
		top = max(top, value(t))
	}
	if top == 0 {
		return c
	}
	var count [buckets]int
	most := 0
	for _, t := range all {
		b := min(int(value(t)/top*buckets), buckets-1)
		count[b]++
		most = max(most, count[b])
	}
	w := chartWidth / buckets
	for i, n := range count {
		h := (ground - roof) * float64(n) / float64(most)
		c.Rects = append(c.Rects, rect{"bar", float64(i)*w + 1, ground - h, w - 2, h,
			fmt.Sprintf("%s to %s: %d", show(top*float64(i)/buckets), show(top*float64(i+1)/buckets), n)})
	}
	c.Labels = []label{
		{0, 168, "start", "0"}, {200, 168, "middle", show(top / 2)}, {398, 168, "end", show(top)},
		{398, 10, "end", "at most " + shown.Count(most, "task") + " in a column"},
	}
	return c
}

// concurrency shows how many attempts ran at each time.
func concurrency(all []*TaskResult) chart {
	c := chart{Title: "Running attempts over time", Axis: true}
	type edge struct {
		at time.Time
		by int
	}
	var edges []edge
	for _, t := range all {
		for _, a := range t.Attempts {
			edges = append(edges, edge{a.Started, 1}, edge{a.Ended, -1})
		}
	}
	if len(edges) == 0 {
		return c
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return a.at.Compare(b.at) })
	from, to := edges[0].at, edges[len(edges)-1].at
	const steps = 200
	var level [steps]int
	n, most, i := 0, 1, 0
	for s := range steps {
		until := from.Add(time.Duration(float64(to.Sub(from)) * float64(s+1) / steps))
		level[s] = n
		for ; i < len(edges) && !edges[i].at.After(until); i++ {
			n += edges[i].by
			level[s] = max(level[s], n)
		}
		most = max(most, level[s])
	}
	var b strings.Builder
	b.WriteString("M0 150")
	for s, v := range level {
		fmt.Fprintf(&b, "L%.1f %.1f", math.Round(chartWidth*float64(s)/(steps-1)), ground-(ground-roof)*float64(v)/float64(most))
	}
	b.WriteString("L400 150Z")
	c.Path = b.String()
	form := "15:04:05"
	switch took := to.Sub(from); {
	case took > 12*time.Hour:
		form = "Jan 2 15:04"
	case took < 10*time.Second:
		form = "15:04:05.0"
	}
	c.Labels = []label{
		{0, 168, "start", from.UTC().Format(form)}, {200, 168, "middle", from.Add(to.Sub(from) / 2).UTC().Format(form)},
		{398, 168, "end", to.UTC().Format(form + " MST")}, {398, 10, "end", "at most " + shown.Count(most, "attempt") + " at a time"},
	}
	return c
}
