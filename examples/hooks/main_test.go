package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func Example() {
	if err := run(context.Background(), "scripted", "Clean up.", new(bytes.Buffer)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// calls Read {"file_path":"/repo/go.mod"}
	// gets module example
	// calls Bash {"command":"rm -rf build"}
	// gets PreToolUse:Bash hook error: Nothing is deleted here.
	// calls Bash {"command":"echo hi"}
	// gets hi
	// says The directory is still there.
}

func TestTheAuditHasWhatRan(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	require.NoError(t, run(t.Context(), "scripted", "Clean up.", &log))
	var ran []string
	for d := json.NewDecoder(&log); d.More(); {
		var line struct {
			Msg   string
			Input struct {
				Command string
			}
		}
		require.NoError(t, d.Decode(&line))
		ran = append(ran, line.Msg+" "+line.Input.Command)
	}
	assert.Equal(t, []string{"Read ", "Bash echo hi"}, ran)
}
