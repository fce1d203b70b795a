package fleet

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/internal/pages"
)

// reportFile is the report for people in Job.Out: one HTML file that needs no network. It is
// the frozen form of the window's page of a job, made of the same modules. The agents' output
// is text in it, and a Content-Security-Policy allows the report's own script and style alone.
const reportFile = "report.html"

//go:embed report/report.html.tmpl
var reportTemplate string

// maxShownText is the longest text of a result in the report.
const maxShownText = 32 << 10

// bounds are those of the transcripts inside the report. The rest is in the files beside it.
type bounds struct {
	each int // its head and its tail
	all  int // packed
}

type reportPage struct {
	CSP      string
	CSS      template.CSS
	JS       template.JS
	Sprite   template.HTML
	Data     string // a reportJob as JSON
	Summary  Summary
	Took     string
	Starved  string // "": the machine was not
	Cost     string
	Tokens   string
	Cached   string
	Families []familyCount
	Statuses []Status
	Columns  columns
	Worked   string // "": as long as Took
	Rows     []reportRow
	Packs    []pack
}

type familyCount struct {
	Name  Family
	Title string
	Count int
}

type reportRow struct {
	ID, Words, Time, Cost, Short, Error, Verdict, Text, Diff, Pack, File string

	Status                          Status
	Family                          Family
	Tries, Requeued, Denied, Rounds int

	// For the charts: the first line of Error, when the task ended, its time in milliseconds,
	// and its tags as JSON.
	First, Ended, Tags string
	Wall               int64
	USD, Credits       float64
}

// columns say which columns of the table have anything in them.
type columns struct {
	Grid                                        template.CSS
	Time, Cost, Tries, Requeued, Rounds, Denied bool
}

// columnsOf leaves out what is the same nothing in every row.
func columnsOf(all []*TaskResult) columns {
	var c columns
	for _, t := range all {
		c.Time = c.Time || t.Usage.Wall > 0
		c.Cost = c.Cost || t.Usage.USD+t.Usage.Credits > 0
		c.Tries = c.Tries || len(t.Attempts) > 1
		c.Requeued = c.Requeued || t.Requeued > 0
		c.Rounds = c.Rounds || t.Verdict != nil && t.Verdict.Rounds > 0
		c.Denied = c.Denied || t.Denied > 0
	}
	c.Grid = "minmax(8rem,2fr) 7rem"
	for _, there := range []bool{c.Time, c.Cost, c.Tries, c.Requeued, c.Rounds, c.Denied} {
		if there {
			c.Grid += " 5rem"
		}
	}
	c.Grid += " 4fr"
	return c
}

// pack is a transcript, as gzip in base64.
type pack struct{ ID, Data string }

// report writes report.html.
func (r *reporter) report(s Summary, end *closing) error {
	t, err := template.New("report").Parse(reportTemplate)
	if err != nil {
		return err
	}
	page := r.page(s, end, bounds{each: 256 << 10, all: 64 << 20})
	return journal.WriteFile(r.records.fs, reportFile, func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 64<<10)          // a template writes piece by piece
		return cmp.Or(t.Execute(b, page), b.Flush()) // the writer keeps its first error
	})
}

func (r *reporter) page(s Summary, end *closing, most bounds) *reportPage {
	hide := r.redactor(end)
	if s.Stop != nil {
		s.Stop = &Stop{Reason: s.Stop.Reason, Detail: hide.Replace(s.Stop.Detail)}
	}
	all := end.results
	cols := columnsOf(all)
	style := pages.Text("window.css") + pages.Text("report.css") + fmt.Sprintf(".row>summary,.head{grid-template-columns:%s}\n", cols.Grid)
	script := pages.Report()
	page := &reportPage{
		CSP: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + hashOf(style) + "; script-src " + hashOf(script),
		CSS: template.CSS(style), JS: template.JS(script), Sprite: template.HTML(pages.Sprite()), //nolint:gosec // the report's own
		Columns: cols, Data: r.data(&s, all), Summary: s, Took: rounded(s.Ended.Sub(s.Started)), Cost: cost(s.Usage),
	}
	if s.Starved > 0 {
		page.Starved = fmt.Sprintf("the machine had too little processor time for %s (%.0f %%)",
			rounded(time.Duration(s.Starved)), 100*time.Duration(s.Starved).Seconds()/max(s.Ended.Sub(s.Started).Seconds(), 1e-3))
	}
	k := s.Usage.Tokens
	page.Tokens, page.Cached = thousands(k.Input+k.Output+k.CacheWrite+k.CacheRead), thousands(k.CacheRead)
	for _, f := range []familyCount{
		{familyAgent, "not accepted", 0}, {familyLimit, "at a limit", 0},
		{familyInfrastructure, "infrastructure", 0}, {familyNotRun, "skipped", 0},
	} {
		if f.Count = s.ByFamily[f.Name]; f.Count > 0 {
			page.Families = append(page.Families, f)
		}
	}
	packed, z := 0, gzip.NewWriter(nil)
	for i, t := range all {
		row := rowOf(t, hide)
		if t.Transcript != "" {
			row.File = t.Transcript
			if data := r.packed(t, hide, z, most.each); data != "" && packed+len(data) <= most.all {
				packed += len(data)
				row.Pack = fmt.Sprint("transcript-", i)
				page.Packs = append(page.Packs, pack{row.Pack, data})
			}
		}
		if t.Diff != "" {
			row.Diff = clip(hide.Replace(r.content(t, t.Diff)), maxShownText)
		}
		page.Rows = append(page.Rows, row)
		if !slices.Contains(page.Statuses, t.Status) {
			page.Statuses = append(page.Statuses, t.Status)
		}
	}
	slices.Sort(page.Statuses)
	if s.Began.Before(s.Started) && !s.Began.IsZero() {
		page.Worked = fmt.Sprintf("%s of work since %s, in all processes", rounded(time.Duration(s.Worked)), s.Began.UTC().Format("2006-01-02 15:04:05 MST"))
	}
	return page
}

func rowOf(t *TaskResult, hide *strings.Replacer) reportRow {
	row := reportRow{
		ID: t.ID, Status: t.Status, Family: t.Family, Time: rounded(time.Duration(t.Usage.Wall)), Cost: cost(t.Usage),
		Tries: len(t.Attempts), Requeued: t.Requeued, Denied: t.Denied, Text: clip(hide.Replace(t.Text), maxShownText), Error: clip(hide.Replace(t.Error), maxShownText),
	}
	if row.Text == "" && len(t.Structured) > 0 {
		row.Text = clip(hide.Replace(string(t.Structured)), maxShownText)
	}
	row.Short = clip(strings.Join(strings.Fields(row.Text), " "), 200)
	if row.Error != "" {
		row.Short = clip(strings.Join(strings.Fields(row.Error), " "), 200)
	}
	if t.Verdict != nil {
		row.Rounds = t.Verdict.Rounds
		row.Verdict = clip(hide.Replace(t.Verdict.Output), maxShownText)
	}
	if row.Error != "" {
		row.First = row.Short
	}
	if n := len(t.Attempts); n > 0 {
		row.Ended = t.Attempts[n-1].Ended.UTC().Format(time.RFC3339Nano)
	}
	row.Wall, row.USD, row.Credits = time.Duration(t.Usage.Wall).Milliseconds(), t.Usage.USD, t.Usage.Credits
	row.Tags = string(asJSON(t.Tags))
	row.Words = strings.Join(append([]string{t.ID, string(t.Status), t.Class, row.Short}, t.Tags...), " ")
	return row
}

// content is that of a file that a result names; "" if it cannot be read.
func (r *reporter) content(t *TaskResult, name string) string {
	f, err := r.records.get(r.hard, t, name)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, 16<<20))
	if err != nil {
		return ""
	}
	return string(text)
}

// packed is a transcript for the report: its head and its tail, in whole lines.
func (r *reporter) packed(t *TaskResult, hide *strings.Replacer, z *gzip.Writer, most int) string {
	f, err := r.records.get(r.hard, t, t.Transcript)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	text, err := ends(f, most)
	if err != nil || text == "" {
		return ""
	}
	var b bytes.Buffer
	z.Reset(&b)
	_, _ = io.WriteString(z, hide.Replace(text)) // to memory
	_ = z.Close()
	return base64.RawURLEncoding.EncodeToString(b.Bytes()) // no character that HTML would escape
}

// ends is a text of lines, or its first and last lines with a line between them that says how
// much is missing: at most so many bytes of it.
func ends(from io.Reader, most int) (string, error) {
	text, err := io.ReadAll(io.LimitReader(from, int64(most)))
	if err != nil || len(text) < most {
		return string(text), err
	}
	half := most / 2
	head, tail, size := text[:half], bytes.Clone(text[half:]), len(text)
	for piece := make([]byte, 64<<10); err == nil; {
		var n int
		n, err = from.Read(piece)
		size += n
		if tail = append(tail, piece[:n]...); len(tail) > most+len(piece) {
			tail = append(tail[:0], tail[len(tail)-half:]...)
		}
	}
	if !errors.Is(err, io.EOF) {
		return "", err
	}
	if size == most {
		return string(text), nil
	}
	head = head[:bytes.LastIndexByte(head, '\n')+1]
	tail = tail[max(len(tail)-half, 0):]
	_, tail, _ = bytes.Cut(tail, []byte("\n"))
	return fmt.Sprintf("%s{\"type\":\"cut\",\"bytes\":%d}\n%s", head, size-len(head)-len(tail), tail), nil
}

// clip is the beginning of a text.
func clip(text string, most int) string {
	return shown.Head(strings.ToValidUTF8(text, "\uFFFD"), most)
}

func cost(u Usage) string {
	if u.Credits > 0 {
		return shown.Amount(u.Credits) + " credits"
	}
	return "$" + shown.Amount(u.USD)
}

func thousands(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprint(n)
}

func rounded(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
