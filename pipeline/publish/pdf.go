package publish

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"math"
	"strconv"
)

// maxInflated is the size in bytes of a PDF's streams above which it isn't compared number by number.
const maxInflated = 1 << 28

// unlikePDF is unlike for two PDF files that runexp wrote: their streams are compared one by one, drawings as
// an SVG is, and images by the bytes of their pixels.
func unlikePDF(published, now []byte) (words string, deviation, tolerance float64) {
	a, err1 := streamsOf(published)
	b, err2 := streamsOf(now)
	if err1 != nil || err2 != nil {
		return "unreadable", math.Inf(1), 0
	}
	if len(a) != len(b) {
		return "another drawing", math.Inf(1), svgTolerance
	}
	half := func(string, string) float64 { return svgTolerance }
	for i, x := range a {
		y, same := b[i], false
		if x.image {
			same = y.image && imageLike(x.data, y.data)
		} else if d, ok := alike(svgNumber, x.data, y.data, half); ok {
			deviation, same = max(deviation, d), true
		}
		if !same {
			return "another drawing", math.Inf(1), svgTolerance
		}
	}
	return "", deviation, svgTolerance
}

// A stream is one of a PDF, decompressed.
type stream struct {
	image bool
	data  []byte
}

// imageLike reports whether the bytes of two images' pixels differ as little as those of a reproduced PNG.
func imageLike(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	sum, far := 0.0, 0.0
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		sum += d
		if d > farOff {
			far++
		}
	}
	n := float64(max(len(a), 1))
	return sum/n <= meanOff && far/n <= farShare
}

// streamsOf returns the streams of a PDF file of runexp in their order.
func streamsOf(b []byte) (list []stream, err error) {
	left := int64(maxInflated)
	for {
		i := bytes.Index(b, []byte(">>stream\n"))
		if i < 0 {
			return list, nil
		}
		head, data := b[:i], b[i+len(">>stream\n"):]
		k := bytes.LastIndex(head, []byte("/Length "))
		if k < 0 {
			return nil, fmt.Errorf("a stream of no length")
		}
		n, err := strconv.Atoi(string(head[k+len("/Length "):]))
		if err != nil || n < 0 || n > len(data) {
			return nil, fmt.Errorf("a stream ends behind its file")
		}
		b = data[n:]
		data = data[:n]
		if bytes.HasSuffix(head[:k], []byte("/Filter/FlateDecode")) {
			z, err := zlib.NewReader(bytes.NewReader(data))
			if err != nil {
				return nil, err
			}
			if data, err = io.ReadAll(io.LimitReader(z, left)); err != nil {
				return nil, err
			}
			if left -= int64(len(data)); left <= 0 {
				return nil, fmt.Errorf("its streams have more than %d bytes", maxInflated)
			}
		}
		list = append(list, stream{bytes.Contains(head[bytes.LastIndex(head, []byte("obj\n"))+1:],
			[]byte("/Subtype/Image")), data})
	}
}
