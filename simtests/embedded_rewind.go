package simtests

import "path/filepath"

// rewindsFiles notes that the host asks for a rewind: until its answer, files change without a call.
func (m *mind) rewindsFiles(id string) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.rewinds = id
}

// rewound notes the answer to a request.
func (m *mind) rewound(id string) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if id == m.rewinds {
		m.rewinds = ""
	}
}

// restores reports whether a rewind changes the file. Like every new content, one that it restores is
// synced before it gets the file's name.
func (m *mind) restores(path string) bool {
	m.w.mu.Lock()
	lost := false
	if parts, _ := filepath.Glob(path + ".tmp.*"); len(parts) == 1 { // the pattern is right
		lost = !m.parts[parts[0]]
	}
	rewinds := m.rewinds != ""
	m.w.mu.Unlock()
	if rewinds && lost {
		m.w.Errorf("recorded: %s restores %s, and a loss of power would lose its content", m.lane, filepath.Base(path))
	}
	return rewinds
}
