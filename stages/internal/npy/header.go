package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

const (
	magic     = "\x93NUMPY"
	maxHeader = 1 << 20
	maxRank   = 32 // as in NumPy 1
)

// A header is the part before the elements.
type header struct {
	dtype   string
	big     bool // big-endian elements
	fortran bool
	shape   []int
	bytes   int // of all elements
}

var (
	descrPattern   = regexp.MustCompile(`'descr'\s*:\s*'([<>|=]?)([a-zA-Z]\d*)'`)
	fortranPattern = regexp.MustCompile(`'fortran_order'\s*:\s*(True|False)`)
	shapePattern   = regexp.MustCompile(`'shape'\s*:\s*\(([^)]*)\)`)
)

// sizes returns the bytes of one element, 0 for an unsupported type.
func sizes(dtype string) int {
	switch dtype {
	case "b1", "i1", "u1":
		return 1
	case "f2", "i2", "u2":
		return 2
	case "f4", "i4", "u4":
		return 4
	case "f8", "i8", "u8":
		return 8
	}
	if n, ok := strings.CutPrefix(dtype, "U"); ok {
		if w, err := strconv.Atoi(n); err == nil && w > 0 && w <= math.MaxInt32/4 {
			return 4 * w
		}
	}
	return 0
}

func readHeader(r io.Reader) (header, error) {
	var h header
	var lead [8]byte
	if _, err := io.ReadFull(r, lead[:]); err != nil || string(lead[:6]) != magic {
		return h, fmt.Errorf("not a .npy array")
	}
	length := make([]byte, 2)
	if lead[6] > 1 {
		length = make([]byte, 4)
	}
	if _, err := io.ReadFull(r, length); err != nil {
		return h, fmt.Errorf("the header of the array is cut off")
	}
	n := uint32(binary.LittleEndian.Uint16(length))
	if len(length) == 4 {
		n = binary.LittleEndian.Uint32(length)
	}
	if n > maxHeader {
		return h, fmt.Errorf("the header of the array claims %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, fmt.Errorf("the header of the array is cut off")
	}
	return parseHeader(string(text))
}

func parseHeader(text string) (header, error) {
	var h header
	descr := descrPattern.FindStringSubmatch(text)
	fortran := fortranPattern.FindStringSubmatch(text)
	shape := shapePattern.FindStringSubmatch(text)
	if descr == nil || fortran == nil || shape == nil {
		return h, fmt.Errorf("the array's header %.80q is not one of a plain array", text)
	}
	h.big, h.dtype, h.fortran = descr[1] == ">", descr[2], fortran[1] == "True"
	h.bytes = sizes(h.dtype)
	if h.bytes == 0 {
		return h, fmt.Errorf("arrays of type %q are not supported", h.dtype)
	}
	h.shape = []int{}
	for _, s := range strings.Split(shape[1], ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		d, err := strconv.Atoi(strings.TrimSuffix(s, "L"))
		if err != nil || d < 0 {
			return h, fmt.Errorf("the array's shape (%s) is malformed", shape[1])
		}
		h.shape = append(h.shape, d)
	}
	if len(h.shape) > maxRank {
		return h, fmt.Errorf("an array of %d dimensions has too many", len(h.shape))
	}
	empty := false
	for _, d := range h.shape {
		if d == 0 {
			empty = true
			continue
		}
		if h.bytes > math.MaxInt/d {
			return h, fmt.Errorf("an array of shape %v is too large", h.shape)
		}
		h.bytes *= d
	}
	if empty {
		h.bytes = 0
	}
	return h, nil
}
