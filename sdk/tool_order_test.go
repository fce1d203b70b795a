package sdk_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/sdk"
)

// TestSequential runs calls as a bridge does: places are taken as the calls
// arrive, and then the tasks start in any order.
func TestSequential(t *testing.T) {
	t.Parallel()
	const calls = 12
	shuffled := false
	for seed := range uint64(100) {
		s := sim.New(seed)
		ctx := mcp.ContextWithExecutor(context.Background(), s)
		var begun, wrote []string
		writing, reading, mostReading := 0, 0, 0
		pause := func() { // gives every other task the chance to run
			open := make(chan struct{})
			s.AfterFunc(1, func() { close(open) })
			assert.NoError(t, mcp.Await(ctx, open))
		}
		srv, err := sdk.NewMCPServer("srv", "1",
			sdk.NewTool("write", "d", func(_ context.Context, in echoInput) (*sdk.ToolResult, error) {
				writing++
				assert.Equal(t, 1, writing, "one at a time")
				pause()
				wrote = append(wrote, in.X)
				writing--
				if in.X == "w6" {
					panic("a place is left whatever happens")
				}
				return sdk.Text(in.X), nil
			}),
			sdk.NewTool("read", "d", func(context.Context, echoInput) (*sdk.ToolResult, error) {
				reading++
				mostReading = max(mostReading, reading)
				pause()
				reading--
				return sdk.Text("x"), nil
			}, sdk.ReadOnly()))
		require.NoError(t, err)
		srv = srv.Sequential()
		var want []string
		for i := range calls {
			tool, x := "write", fmt.Sprint("w", i)
			if i%3 == 0 {
				tool = "read"
			}
			place := srv.MCPHandler.(mcp.Orderer).Enter(tool)
			if tool == "read" {
				assert.Nil(t, place, "reading waits for nobody")
			}
			if i == 4 { // cancelled before its task began
				place.Leave()
				continue
			}
			if tool == "write" && i != 5 {
				want = append(want, x)
			}
			callCtx := mcp.ContextWithPlace(ctx, place)
			if i == 5 { // cancelled while it waits
				c, cancel := context.WithCancel(callCtx)
				s.AfterFunc(0, cancel)
				callCtx = c
			}
			s.Go(func() {
				begun = append(begun, x)
				_, err := srv.Handle(callCtx, "tools/call", params(t, tool, `{"x":"`+x+`"}`, ""))
				if err == nil && i == 5 {
					want = append(want, x) // it had begun already
				}
				if place != nil {
					place.Leave() // as a careful bridge does
				}
			})
		}
		require.NoError(t, s.Run(10_000))
		require.Zero(t, s.Parked(), "seed %d: somebody waits for a place that was left", seed)
		s.Close()
		slices.SortStableFunc(want, func(a, b string) int { return len(a) - len(b) })
		wrote = slices.DeleteFunc(wrote, func(x string) bool { return x == "w5" })
		want = slices.DeleteFunc(want, func(x string) bool { return x == "w5" })
		require.Equal(t, want, wrote, "seed %d", seed)
		require.Greater(t, mostReading, 1, "seed %d: reading is concurrent", seed)
		shuffled = shuffled || !slices.IsSorted(begun)
	}
	assert.True(t, shuffled, "the tasks always started in order, which tests nothing")
}

func TestWithoutABridgeOrderIsThatOfHandle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		hold := make(chan struct{})
		srv := server(t, sdk.NewTool("write", "d", func(_ context.Context, in echoInput) (*sdk.ToolResult, error) {
			<-hold
			ran = append(ran, in.X)
			return sdk.Text("x"), nil
		})).Sequential()
		done := make(chan struct{})
		for _, x := range []string{"a", "b", "c"} {
			p := params(t, "write", `{"x":"`+x+`"}`, "")
			go func() {
				_, err := srv.Handle(context.Background(), "tools/call", p)
				assert.NoError(t, err)
				done <- struct{}{}
			}()
			synctest.Wait()
		}
		close(hold)
		for range 3 {
			<-done
		}
		assert.Equal(t, []string{"a", "b", "c"}, ran)
	})
}

// TestCallsAreConcurrentUnlessAsked meets in the middle of three calls.
func TestCallsAreConcurrentUnlessAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inside := make(chan struct{}, 3)
		hold := make(chan struct{})
		srv := server(t, sdk.NewTool("write", "d", func(context.Context, none) (*sdk.ToolResult, error) {
			inside <- struct{}{}
			<-hold
			return sdk.Text("x"), nil
		}))
		done := make(chan struct{})
		for range 3 {
			p := params(t, "write", "", "")
			go func() {
				_, err := srv.Handle(context.Background(), "tools/call", p)
				assert.NoError(t, err)
				done <- struct{}{}
			}()
		}
		synctest.Wait()
		assert.Len(t, inside, 3)
		close(hold)
		for range 3 {
			<-done
		}
	})
}

func TestPlacesOfOthersAreNotTaken(t *testing.T) {
	t.Parallel()
	write := func() sdk.Tool { return sdk.NewTool("write", "d", echo) }
	mine, other := server(t, write()).Sequential(), server(t, write()).Sequential()
	ctx := mcp.ContextWithPlace(context.Background(), other.MCPHandler.(mcp.Orderer).Enter("write"))
	raw, err := mine.Handle(ctx, "tools/call", params(t, "write", `{"x":"hi"}`, ""))
	require.NoError(t, err)
	assert.Equal(t, "hi", parse(t, raw).text())
	assert.Nil(t, mine.MCPHandler.(mcp.Orderer).Enter("nosuch"))
	assert.Nil(t, server(t, write()).MCPHandler.(mcp.Orderer).Enter("write"), "no order was asked for")
}
