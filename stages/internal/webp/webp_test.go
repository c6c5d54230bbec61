package webp

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/chai2010/webp"
	decoder "golang.org/x/image/webp"

	"github.com/runexp/runexp/stages/internal/picture"
	"github.com/runexp/runexp/stages/stagetest"
)

// drawn returns an image whose neighbouring pixels are alike, or noise.
func drawn(w, h int, noise bool) *picture.RGB {
	r := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	m := picture.NewRGB(w, h)
	for i := range m.Pix {
		switch {
		case noise:
			m.Pix[i] = uint8(r.Uint32())
		case i >= 3:
			m.Pix[i] = m.Pix[i-3] + uint8(r.IntN(3)) - 1
		}
	}
	return m
}

// TestSize checks that the measured form is lossless, that noise can't be made smaller, and that an image of
// one colour takes next to nothing.
func TestSize(t *testing.T) {
	for _, m := range []*picture.RGB{drawn(1, 1, true), drawn(33, 17, false), drawn(64, 64, true)} {
		b, err := webp.EncodeLosslessRGBA(opaque(m))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := Size(m); n != len(b) || err != nil {
			t.Errorf("%d×%d: %d bytes, %v; the file has %d", m.W, m.H, n, err, len(b))
		}
		back, err := decoder.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.W * m.H {
			r, g, b, _ := back.At(i%m.W, i/m.W).RGBA()
			got, want := []uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}, m.Pix[3*i:3*i+3]
			if !slices.Equal(got, want) {
				t.Fatalf("%d×%d: pixel %d is %v, not %v", m.W, m.H, i, got, want)
			}
		}
	}
	if n, err := Size(drawn(64, 64, true)); n < 3*64*64 || err != nil {
		t.Errorf("noise of %d bytes takes %d, %v", 3*64*64, n, err)
	}
	if n, err := Size(picture.NewRGB(500, 500)); n > 100 || err != nil {
		t.Errorf("a black image takes %d bytes, %v", n, err)
	}
	if _, err := Size(picture.NewRGB(0, 3)); err == nil {
		t.Error("an image without pixels has a size")
	}
}

// TestSizeAtOnce checks that images measured at once have the sizes that they have one by one.
func TestSizeAtOnce(t *testing.T) {
	var want, got [8]int
	measure := func(i int) int {
		n, err := Size(drawn(30+i, 40, i%2 == 0))
		if err != nil {
			t.Error(err)
		}
		return n
	}
	var all sync.WaitGroup
	for i := range want {
		want[i] = measure(i)
		all.Go(func() { got[i] = measure(i) })
	}
	all.Wait()
	if got != want {
		t.Errorf("at once %v, one by one %v", got, want)
	}
}

// TestVersion checks that the release that results name is the one that go.mod asks for: version 1.4.0 of the
// module carries libwebp 1.4.0.
func TestVersion(t *testing.T) {
	root, err := stagetest.Root()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`github.com/chai2010/webp v(\S+)`).FindSubmatch(b)
	if m == nil || string(m[1]) != Version {
		t.Errorf("go.mod has %q, Version is %q: what release of libwebp does it carry?", m, Version)
	}
}
