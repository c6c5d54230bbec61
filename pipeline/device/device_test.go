package device

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/runexp/runexp/stages"
)

func TestParse(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "2,5")
	for list, want := range map[string]string{
		"cpu": "cpu:0", "cpu:0": "cpu:0", "cpu:0,cpu:1": "cpu:0 cpu:1", " cpu:1 , cpu:0": "cpu:1 cpu:0",
		"cuda": "cuda:0 cuda:1", "cuda:1": "cuda:1",
		"": "unknown device", "gpu": "unknown device", "cpu:x": "not a number", "cpu:-1": "not a number",
		"cpu,cuda": "mix classes", "cpu:1,cpu:1": "listed twice", "cpu,cpu:0": "listed twice", "cuda,cuda:1": "listed twice", "cpu:1,cpu:+1": "listed twice",
	} {
		devices, err := Parse(list)
		var got string
		for i, d := range devices {
			if got += d.String(); i < len(devices)-1 {
				got += " "
			}
			if d.Threads < 1 {
				t.Errorf("%q: %d threads", list, d.Threads)
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%q: got %q, want %q", list, got, want)
		}
	}
}

// A session notes when it's closed.
type session struct {
	name   string
	closed *[]string
}

func (s session) Close() error { *s.closed = append(*s.closed, s.name); return nil }

func TestSlotKeepsWhatItCan(t *testing.T) {
	var closed []string
	s := NewSlot(stages.Device{Class: "cpu"}, 10)
	keep := func(name string, weight int64) {
		t.Helper()
		c, err := s.Keep(name, weight, func() (io.Closer, error) { return session{name, &closed}, nil })
		if err != nil || c.(session).name != name {
			t.Fatal(c, err)
		}
	}
	check := func(what, want string) {
		t.Helper()
		if got := fmt.Sprint(closed); got != want {
			t.Errorf("%s: closed %s, want %s", what, got, want)
		}
		closed = nil
	}
	end := s.Begin()
	keep("a", 6)
	keep("b", 6)
	check("a call keeps what it uses, however heavy", "[]")
	inner := s.Begin()
	keep("c", 6)
	check("a call within it leaves that alone", "[]")
	if err := s.Trim(); err != nil {
		t.Fatal(err)
	}
	check("for lack of memory too", "[]")
	inner()
	keep("a", 6)
	end()
	end = s.Begin()
	keep("d", 4)
	check("the oldest go first, until there's room", "[b c]")
	end()
	if err := s.Trim(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(closed)
	check("nothing runs", "[a d]")
	if _, err := s.Keep("e", 1, func() (io.Closer, error) { return nil, io.EOF }); err != io.EOF {
		t.Errorf("a session that can't be made: %v", err)
	}
	if _, err := s.Keep("g", 1, func() (io.Closer, error) { keep("f", 1); return session{"g", &closed}, nil }); err != nil {
		t.Errorf("what needs something else that is kept: %v", err)
	}
	if err := s.Clear(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(closed)
	check("the end", "[f g]")
}
