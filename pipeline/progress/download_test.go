package progress

import (
	"strings"
	"testing"
	"time"
)

func TestDownloads(t *testing.T) {
	now := time.Unix(0, 0)
	clock := func() time.Time { return now }
	var b strings.Builder
	d := Downloads(&b, nil, clock)
	d.Show("a.onnx", 1_000_000, 12_300_000)
	d.Show("a.onnx", 2_000_000, 12_300_000)
	now = now.Add(31 * time.Second)
	d.Show("a.onnx", 3_000_000, 12_300_000)
	d.Show("a.onnx", 12_300_000, 12_300_000)
	d.Show("b.zip", 0, -1)
	d.Close()
	const want = "fetching a.onnx, 12.3 MB\nfetching a.onnx: 3.0 MB\nfetching b.zip\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	b.Reset()
	bar := Downloads(&b, func() int { return 60 }, clock)
	bar.Show("a-file-with-a-long-name-that-does-not-fit.onnx", 6_000_000, 12_000_000)
	bar.Show("b.zip", 6_000_000, -1)
	bar.Close()
	if strings.TrimRight(b.String()[strings.LastIndex(b.String(), "b.zip"):], " \r") == "b.zip" {
		t.Errorf("%q: nothing clears the bar", b.String())
	}
	for _, part := range []string{"a-file-with-a-long-name-that-…", "b.zip"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q lacks %q", b.String(), part)
		}
	}
}
