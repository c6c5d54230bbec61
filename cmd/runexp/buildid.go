package main

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/runexp/runexp/pipeline/store"
	"github.com/runexp/runexp/stages"
)

// compiler returns the function that names what compiles programs: this build of the
// command, and the ONNX Runtime that simplifies models for it. Where there is none, it is
// the one that this build had last: nothing can be computed, and what was stays known.
func compiler(s *store.Store, runtime string) func() string {
	return sync.OnceValue(func() string {
		build, version := buildID(), runtimeVersion(s, runtime)
		last := stages.Sum([]byte("last runtime of build " + build))
		if version != noRuntime {
			_ = s.SetMemo(last, []byte(version))
		} else if b, ok := s.Memo(last); ok {
			version = string(b)
		}
		return "build " + build + ", " + version
	})
}

// buildID returns what tells this build of the command from others: the ID that Go's
// linker has written, or the digest of the file where none is found. A build that can't
// be told from others is taken for another each time.
func buildID() string {
	unknown := fmt.Sprint("at ", time.Now().UnixNano())
	path, err := os.Executable()
	if err != nil {
		return unknown
	}
	f, err := os.Open(path)
	if err != nil {
		return unknown
	}
	defer f.Close()
	if id := elfBuildID(f); id != "" {
		return id
	}
	if id := textBuildID(f); id != "" {
		return id
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(f, 0, 1<<62)); err != nil {
		return unknown
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// elfBuildID reads the note in which ELF files have the ID.
func elfBuildID(f io.ReaderAt) string {
	file, err := elf.NewFile(f)
	if err != nil {
		return ""
	}
	note := file.Section(".note.go.buildid")
	if note == nil {
		return ""
	}
	b, err := note.Data()
	if err != nil || len(b) < 16 { // sizes of name and text, a type, the name
		return ""
	}
	text := b[16:]
	return string(text[:min(len(text), int(file.ByteOrder.Uint32(b[4:])))])
}

// textBuildID looks for the ID where other formats have it, at the beginning of the code.
func textBuildID(f io.ReaderAt) string {
	b := make([]byte, 64<<10)
	n, _ := f.ReadAt(b, 0)
	_, id, found := bytes.Cut(b[:n], []byte("\xff Go build ID: \""))
	if !found {
		return ""
	}
	id, _, found = bytes.Cut(id, []byte("\"\n"))
	if !found {
		return ""
	}
	return string(id)
}
