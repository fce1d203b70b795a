package troupenats

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// backup has the stream's configuration and state, as in the file backup.json of "nats stream backup".
type backup struct {
	Config json.RawMessage `json:"config"`
	State  json.RawMessage `json:"state"`
}

// The files of a backup, named as "nats stream backup" names them: "nats stream restore" reads them.
const (
	backupState = "backup.json"
	backupData  = "stream.tar.s2"
)

// backUp writes a stream to a directory. The stream stays as it is.
func backUp(t *testing.T, nc *nats.Conn, stream, dir string) {
	t.Helper()
	inbox := nc.NewInbox()
	chunks, err := nc.SubscribeSync(inbox)
	require.NoError(t, err)
	defer func() { _ = chunks.Unsubscribe() }()
	var b backup
	api(t, nc, "$JS.API.STREAM.SNAPSHOT."+stream, server.JSApiStreamSnapshotRequest{DeliverSubject: inbox, NoConsumers: true}, &b)
	var data bytes.Buffer
	for {
		m, err := chunks.NextMsg(20 * time.Second)
		require.NoError(t, err, stream)
		if len(m.Data) == 0 { // the end
			require.Empty(t, m.Header.Get("Description"), "%s: %v", stream, m.Header)
			break
		}
		data.Write(m.Data)
		if m.Reply != "" { // the server sends so many chunks ahead
			require.NoError(t, m.Respond(nil))
		}
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	raw, err := json.MarshalIndent(b, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, backupState), append(raw, '\n'), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, backupData), data.Bytes(), 0o600))
}

// restore makes the stream of a backup, which the server does not have yet, with the same sequences.
func restore(t *testing.T, nc *nats.Conn, dir string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, backupState))
	require.NoError(t, err)
	var b backup
	require.NoError(t, json.Unmarshal(raw, &b))
	var of struct{ Name string }
	require.NoError(t, json.Unmarshal(b.Config, &of))
	var to server.JSApiStreamRestoreResponse
	api(t, nc, "$JS.API.STREAM.RESTORE."+of.Name, b, &to)
	data, err := os.ReadFile(filepath.Join(dir, backupData))
	require.NoError(t, err)
	for len(data) > 0 {
		n := min(len(data), 64<<10)
		_, err := nc.Request(to.DeliverSubject, data[:n], 20*time.Second)
		require.NoError(t, err, dir)
		data = data[n:]
	}
	answer, err := nc.Request(to.DeliverSubject, nil, 20*time.Second)
	require.NoError(t, err, dir)
	require.NoError(t, failed(answer.Data), dir)
}

// api makes a request to the servers' API.
func api(t *testing.T, nc *nats.Conn, subject string, request, to any) {
	t.Helper()
	raw, err := json.Marshal(request)
	require.NoError(t, err)
	answer, err := nc.Request(subject, raw, 20*time.Second)
	require.NoError(t, err, subject)
	require.NoError(t, failed(answer.Data), subject)
	require.NoError(t, json.Unmarshal(answer.Data, to))
}

func failed(answer []byte) error {
	var r server.ApiResponse
	if err := json.Unmarshal(answer, &r); err != nil || r.Error == nil {
		return err
	}
	return r.Error
}
