package recent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestGet: a value is made again when a file changes, appears or isn't old enough to be known by its times.
func TestGet(t *testing.T) {
	dir := t.TempDir()
	file, other := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write := func(path, text string, age time.Duration) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	made := 0
	var c Cache[int]
	get := func(key string) int {
		t.Helper()
		n, err := c.Get(key, []string{file, other}, func() (int, error) { made++; return made, nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	write(file, "1", time.Hour)
	if first, second := get(""), get(""); first != 1 || second != 2 {
		t.Errorf("a file whose state is a moment old is known: %d, %d", first, second)
	}
	time.Sleep(3 * time.Second) // until its change time is settled
	if first, second, third := get(""), get(""), get("other"); first != 3 || second != 3 || third != 4 {
		t.Errorf("%d, %d and %d", first, second, third)
	}
	write(other, "2", time.Hour)
	if n := get(""); n != 5 {
		t.Errorf("%d with a file that has appeared", n)
	}
	if _, err := c.Get("", nil, func() (int, error) { return 0, errors.New("no") }); err == nil {
		t.Error("an error is lost")
	}
}
