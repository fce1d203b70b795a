package browsertest

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
)

// TestPictures makes the pictures of the documentation: TROUPE_PICTURES is the directory. They
// are best on a machine that has one of the fonts that window.css names.
func TestPictures(t *testing.T) {
	dir := os.Getenv("TROUPE_PICTURES")
	if dir == "" {
		t.Skip("set TROUPE_PICTURES to a directory")
	}
	in := browser(t)
	s := serveWith(t, "tracker", 10012, 6000)
	s.tasks[1]["id"] = "tracker-tests-0001"
	for _, page := range pages {
		if strings.Contains(page.route, "hostile") {
			continue
		}
		for theme, size := range map[string][]int64{"light": {1280, 900}, "dark": {1280, 900}, "phone": {400, 800}} {
			t.Run(page.route+" "+theme, func(t *testing.T) {
				query := "?theme=dark"
				if theme == "light" {
					query = "?theme=light"
				}
				p := window(t, in, s, query+page.route, page.ready, size...)
				p.until(t, fmt.Sprintf(`document.body.textContent.includes(%q)`, page.shows))
				for i, e := range []object{
					{"level": "WARN", "type": "Recovering", "session": "6y7evp9o8sye0", "text": "agent died: signal: killed, 1 of 3 restarts; policy continue, no delay"},
					{"level": "ERROR", "type": "Ended", "session": "c0ffee0000001", "text": "RecoveryError: 3 equal deaths: exit status 1, phase running"},
					{"level": "ERROR", "type": "ActorFailed", "session": "6y7evp9o8sye0", "text": "router#2: panic: runtime error: index out of range [4] with length 4"},
					{"level": "WARN", "type": "Supervision", "session": "6y7evp9o8sye0", "text": "router: restarted as router#3 after 1.2ms; 1 of 10 in 1m"},
					{"level": "WARN", "type": "BreakerOpened", "text": "breaker agent /opt/agents/claude-next: 7 starts failed in a row; next probe in 52s"},
					{"level": "WARN", "type": "Recovering", "session": "q3hd81xk0w2va", "text": "agent died: signal: killed (137), 3 of 5 restarts; policy continue, next process in 412ms"},
				} {
					e["at"] = stamp(time.Now().Add(time.Duration(i-6) * 23 * time.Second))
					s.say("event", e)
				}
				if strings.Contains(page.route, "tree") {
					s.say("actor", object{"session": "6y7evp9o8sye0", "name": "router#2", "incarnation": 2, "state": "crashed", "last_failure": "panic: runtime error: index out of range [4] with length 4"})
				}
				p.pause(t, 600)
				var shot []byte
				require.NoError(t, chromedp.Run(p.ctx, chromedp.CaptureScreenshot(&shot)))
				name := strings.NewReplacer("#/", "", "sessions/6y7evp9o8sye0", "session", "?s=6y7evp9o8sye0", "", "jobs/errors-1.24", "job").Replace(page.route)
				require.NoError(t, os.WriteFile(filepath.Join(dir, "window-"+name+"-"+theme+".png"), small(t, shot), 0o600))
				p.quiet(t)
			})
		}
	}
}

// TestPictureOfAReport makes the picture of report.html.
func TestPictureOfAReport(t *testing.T) {
	dir := os.Getenv("TROUPE_PICTURES")
	if dir == "" {
		t.Skip("set TROUPE_PICTURES to a directory")
	}
	seed, yes := rand.New(rand.NewPCG(1, 1)), true
	script := &scripted.Script{Transcript: true}
	tasks := make([]fleet.Task, 300)
	for i := range tasks {
		prompt := fmt.Sprint("task ", i, ".")
		steps := scripted.Steps{scripted.Delay(time.Duration(50+200*math.Exp(seed.NormFloat64()*.6)) * time.Millisecond), scripted.Text("The errors are wrapped with the standard library, and the tests pass.")}
		if text := []string{"error_max_turns: 60 turns", "the tests fail: TestWrapKeepsStack", "nothing was changed"}[seed.IntN(3)]; seed.Float64() < .1 {
			steps = append(steps[:1], &scripted.Result{IsError: &yes, Text: &text})
		} else {
			steps = append(steps, &scripted.Result{Cost: .05 + seed.Float64()})
		}
		script.Turns = append(script.Turns, scripted.Turn{When: prompt, Steps: steps})
		tasks[i] = fleet.Task{ID: fmt.Sprintf("%s-%03d", pick(&stub{seed: seed}, "billing", "ledger", "search", "auth"), i), Prompt: prompt, Tags: []string{pick(&stub{seed: seed}, "growth", "payments", "search", "platform")}}
	}
	p := open(t, report(t, fleet.Job{ID: "errors-1.24", Options: &sdk.Options{Backend: scripted.New(scripted.WithScript(script), scripted.WithHistory(&scripted.MemoryHistory{}))}, Tasks: tasks, Concurrency: 24}))
	var shot []byte
	require.NoError(t, chromedp.Run(p.ctx, chromedp.EmulateViewport(1280, 960), chromedp.Sleep(500*time.Millisecond), chromedp.CaptureScreenshot(&shot)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "report.png"), small(t, shot), 0o600))
}

// small is a picture with the 256 colours that it has most.
func small(t *testing.T, shot []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(shot))
	require.NoError(t, err)
	count := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	b := from.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			count[at(x, y)]++
		}
	}
	all := make([]color.RGBA, 0, len(count))
	for c := range count {
		all = append(all, c)
	}
	slices.SortFunc(all, func(x, y color.RGBA) int {
		if n := count[y] - count[x]; n != 0 {
			return n
		}
		return int(x.R)<<16 + int(x.G)<<8 + int(x.B) - int(y.R)<<16 - int(y.G)<<8 - int(y.B)
	})
	var colours color.Palette
	for _, c := range all {
		if len(colours) == 256 {
			break
		}
		if !slices.ContainsFunc(colours, func(o color.Color) bool { return near(c, o.(color.RGBA)) }) {
			colours = append(colours, c)
		}
	}
	index := map[color.RGBA]uint8{}
	for _, c := range all {
		index[c] = uint8(colours.Index(c))
	}
	to := image.NewPaletted(b, colours)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			to.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to))
	return out.Bytes()
}

// near says that two colours look the same.
func near(a, b color.RGBA) bool {
	d := func(x, y uint8) int { return max(int(x)-int(y), int(y)-int(x)) }
	return d(a.R, b.R)+d(a.G, b.G)+d(a.B, b.B) < 6
}
