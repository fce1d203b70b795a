package sdk_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func structured(v any) scripted.Turn { return turn(&scripted.Result{Structured: v}) }

func TestAskAs(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(
			structured(map[string]any{"city": "Bonn", "celsius": 21}),
			structured(map[string]any{"city": "Rome", "celsius": "warm"}), structured(map[string]any{"city": "Rome", "celsius": 30}),
			structured("odd"), structured("odd"),
			turn(&scripted.Result{Subtype: "error_max_turns"}),
			turn(&scripted.Result{Subtype: "error_max_structured_output_retries"}),
		)
		var err error
		o.OutputFormat, err = sdk.OutputFormatOf[weather]()
		require.NoError(w, err)
		c := w.connect(o)
		defer w.close(c)
		v, r, err := sdk.AskAs[weather](w.Context(), c, "Bonn?")
		require.NoError(w, err)
		assert.Equal(w, weather{"Bonn", 21}, v)
		assert.NotEmpty(w, r.StructuredOutput)
		v, _, err = sdk.AskAs[weather](w.Context(), c, "Rome?")
		require.NoError(w, err)
		assert.Equal(w, weather{"Rome", 30}, v, "asked again")
		v, r, err = sdk.AskAs[weather](w.Context(), c, "Oslo?")
		require.ErrorAs(w, err, new(*session.StructuredOutputError))
		assert.NotNil(w, r)
		assert.Zero(w, v)
		_, _, err = sdk.AskAs[weather](w.Context(), c, "Kyiv?")
		require.ErrorAs(w, err, new(*sdk.ResultError))
		require.NotErrorAs(w, err, new(*session.StructuredOutputError))
		_, _, err = sdk.AskAs[weather](w.Context(), c, "Lima?")
		require.ErrorAs(w, err, new(*session.StructuredOutputError))
	})
}

func TestAskAsNeedsAnOutputFormat(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		c := w.connect(w.options())
		defer w.close(c)
		_, _, err := sdk.AskAs[weather](w.Context(), c, "hi")
		require.ErrorAs(w, err, new(*sdk.ConfigError))
		require.ErrorContains(w, err, "sdk.OutputFormatOf[sdk_test.weather]()")
		_, _, err = sdk.AskAs[chan int](w.Context(), c, "hi")
		require.ErrorAs(w, err, new(*sdk.ConfigError))
	})
	_, err := sdk.OutputFormatOf[func()]()
	require.ErrorAs(t, err, new(*sdk.ConfigError))
}

func TestAskAsOfAClientThatIsNotConnected(t *testing.T) {
	t.Parallel()
	format, err := sdk.OutputFormatOf[weather]()
	require.NoError(t, err)
	_, _, err = sdk.AskAs[weather](t.Context(), sdk.NewClient(&sdk.Options{OutputFormat: format}), "hi")
	require.ErrorIs(t, err, sdk.ErrNotConnected)
}

// OnMessage sees what Run and RunAs read, in order and on their goroutine.
func TestRunsShowTheirMessages(t *testing.T) {
	t.Parallel()
	runs := map[string]func(context.Context, *sdk.Options) error{
		"Run": func(ctx context.Context, o *sdk.Options) error {
			_, err := sdk.Run(ctx, "hi", o)
			return err
		},
		"RunAs": func(ctx context.Context, o *sdk.Options) error {
			_, _, err := sdk.RunAs[weather](ctx, "hi", o)
			return err
		},
	}
	for name, run := range runs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in(t, func(w *world) {
				o := w.options(turn(scripted.Text("let me see"), &scripted.Result{Structured: map[string]any{"city": "Bonn", "celsius": 21}}))
				var all []sdk.Message // without a lock: the race detector would see another goroutine
				o.OnMessage = func(m sdk.Message) { all = append(all, m) }
				require.NoError(w, run(w.Context(), o))
				assert.Equal(w, []string{"init", "assistant", "result/success"}, kinds(all))

				o = w.options(turn(scripted.Text("let me see")))
				o.OnMessage = func(sdk.Message) { panic("odd") }
				assert.PanicsWithValue(w, "odd", func() { _ = run(w.Context(), o) })
				assert.Empty(w, open(w.rt), "the session is closed first")
			})
		})
	}
}
