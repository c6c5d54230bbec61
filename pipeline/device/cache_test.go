package device

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/runexp/runexp/stages"
)

// A session notes when it's closed.
type session struct {
	name   string
	closed *[]string
}

func (s session) Close() error { *s.closed = append(*s.closed, s.name); return nil }

func TestSlotKeepsWhatItCan(t *testing.T) {
	var closed []string
	s := NewCache(10).NewSlot(stages.Device{Class: "cpu"})
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
	if _, err := s.Keep("g", 1,
		func() (io.Closer, error) { keep("f", 1); return session{"g", &closed}, nil }); err != nil {
		t.Errorf("what needs something else that is kept: %v", err)
	}
	if err := s.Trim(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(closed)
	check("the end", "[f g]")
}

// TestSlotsShare holds that what slots of a cache share is made once, by the first caller, and that it's
// there as long as a call on any of them uses it; and that what a slot keeps is its own.
func TestSlotsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed []string
		cache := NewCache(10)
		a, b := cache.NewSlot(stages.Device{Class: "cpu"}), cache.NewSlot(stages.Device{Class: "cpu",
			Index: 1})
		var made atomic.Int32
		release := make(chan struct{})
		var wg sync.WaitGroup
		var got [2]io.Closer
		ends := []func(){a.Begin(), b.Begin()}
		for i, s := range []*Slot{a, b} {
			wg.Go(func() {
				got[i], _ = s.Share("net", 6, func() (io.Closer, error) {
					<-release
					return session{fmt.Sprint("net ", made.Add(1)), &closed}, nil
				})
			})
		}
		synctest.Wait()
		if err := cache.Trim(); err != nil {
			t.Fatal(err)
		}
		close(release)
		wg.Wait()
		if made.Load() != 1 || got[0] == nil || got[0] != got[1] {
			t.Fatalf("made %d times: %v", made.Load(), got)
		}
		for _, s := range []*Slot{a, b} {
			if c, err := s.Keep("net", 1,
				func() (io.Closer, error) {
					return session{fmt.Sprint("of ", s.number), &closed}, nil
				}); err != nil || c.(session).name != fmt.Sprint("of ", s.number) {
				t.Errorf("slot %d keeps %v, %v", s.number, c, err)
			}
		}
		ends[0]()
		if err := a.Trim(); err != nil || !slices.Equal(closed, []string{"of 1"}) {
			t.Errorf("closed %v while a call on the other slot runs, error %v", closed, err)
		}
		ends[1]()
		if _, err := a.Share("other", 8,
			func() (io.Closer, error) { return session{"other", &closed}, nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(closed, []string{"of 1", "net 1"}) {
			t.Errorf("closed %v for what needs room", closed)
		}
	})
}

// TestShareFails holds that who waits for another slot, which can't make what both want, has its error, or
// tries for itself if that panics; and that nothing stays of it.
func TestShareFails(t *testing.T) {
	for name, fail := range map[string]func() (io.Closer, error){
		"error": func() (io.Closer, error) { return nil, io.EOF },
		"panic": func() (io.Closer, error) { panic("a bug") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache := NewCache(10)
				a, b := cache.NewSlot(stages.Device{}), cache.NewSlot(stages.Device{})
				begun, release := make(chan struct{}), make(chan struct{})
				end := a.Begin()
				go func() {
					defer func() { recover(); end() }()
					a.Share("net", 1, func() (io.Closer, error) {
						close(begun)
						<-release
						return fail()
					})
				}()
				<-begun
				var closed []string
				done := make(chan any)
				go func() {
					c, err :=
						b.Share("net", 1, func() (io.Closer, error) { return session{"net", &closed}, nil })
					if done <- err; err == nil {
						done <- c.(session).name
					}
				}()
				synctest.Wait()
				close(release)
				if name == "error" {
					if err := <-done; err != io.EOF {
						t.Errorf("the other slot's error is %v", err)
					}
				} else if err := <-done; err != nil {
					t.Errorf("the other slot's error is %v", err)
				} else if got := <-done; got != "net" {
					t.Errorf("the other slot got %v", got)
				}
				synctest.Wait()
				closed = nil
				if _, err := b.Share("net", 1,
					func() (io.Closer, error) { return session{"later", &closed}, nil }); err != nil {
					t.Error(err)
				}
				if err := cache.Trim(); err != nil || len(closed) != 1 {
					t.Errorf("at the end %v are closed, %v", closed, err)
				}
			})
		})
	}
}

// A value that knows its weight once it is made makes room for that, and stays itself.
func TestWeighed(t *testing.T) {
	c := NewCache(10)
	s := c.NewSlot(stages.Device{Class: "webgpu"})
	made := map[string]int{}
	keep := func(key string, says int64) {
		t.Helper()
		build := func() (io.Closer, error) { made[key]++; return weighed(says), nil }
		if _, err := s.Keep(key, 1, build); err != nil {
			t.Fatal(err)
		}
	}
	keep("light", 0)
	keep("heavy", 9)
	keep("light", 0)
	keep("heavier", 12) // closes both
	keep("heavier", 12)
	keep("light", 0)
	if made["light"] != 2 || made["heavy"] != 1 || made["heavier"] != 1 {
		t.Errorf("made %v", made)
	}
}

type weighed int64

func (w weighed) Weight() int64 { return int64(w) }
func (weighed) Close() error    { return nil }
