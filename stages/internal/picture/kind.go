package picture

import (
	"bytes"
	"strings"
)

// KindBytes is how many of a file's first bytes [Kind] looks at.
const KindBytes = 512

// A kind is a format that is recognised by a file's first bytes.
type kind struct {
	name    string
	magic   string // "?" matches any byte
	at      int    // where the magic begins
	picture bool
}

// kinds are unsupported files, in the order in which they are compared. Formats of [formats] come first.
var kinds = []kind{
	{"GIF", "GIF8?a", 0, true},
	{"HEIC", "ftyphe", 4, true},
	{"HEIC", "ftypmif1", 4, true},
	{"HEIC", "ftypmsf1", 4, true},
	{"AVIF", "ftypavi", 4, true},
	{"Canon RAW", "ftypcrx ", 4, true},
	{"JPEG XL", "\x00\x00\x00\x0cJXL \r\n\x87\n", 0, true},
	{"JPEG XL", "\xff\x0a", 0, true},
	{"JPEG 2000", "\x00\x00\x00\x0cjP  \r\n\x87\n", 0, true},
	{"JPEG 2000", "\xff\x4f\xff\x51", 0, true},
	{"BigTIFF", "II+\x00", 0, true},
	{"BigTIFF", "MM\x00+", 0, true},
	{"DICOM", "DICM", 128, true},
	{"Photoshop", "8BPS", 0, true},
	{"OpenEXR", "v/1\x01", 0, true},
	{"Radiance HDR", "#?RADIANCE", 0, true},
	{"QOI", "qoif", 0, true},
	{"ICO", "\x00\x00\x01\x00", 0, true},
	{"Netpbm", "P?\n", 0, true},
	{"Netpbm", "P? ", 0, true},
	{"FITS", "SIMPLE  =", 0, true},
	{"NIfTI", "n+1\x00", 344, true},
	{"Fujifilm RAW", "FUJIFILMCCD-RAW", 0, true},
	{"NumPy", "\x93NUMPY", 0, true},
	{lfsPointer, "version https://git-lfs", 0, false},
	{"PDF", "%PDF-", 0, false},
	{"zip", "PK\x03\x04", 0, false},
	{"gzip", "\x1f\x8b", 0, false},
	{"HDF5", "\x89HDF\r\n\x1a\n", 0, false},
	{"MP4", "ftyp", 4, false},
}

// What a file can be in a picture's place.
const (
	lfsPointer = "Git LFS pointer"
	htmlPage   = "HTML page"
)

// Kind returns a file's format, by its name and its first [KindBytes]: "JPEG" or another that [Decode]
// reads; the name of another kind of file, such as "HEIC", and whether it holds a picture; "" if that isn't
// known. Camera raw files are TIFF files around a small preview, and only their extensions distinguish
// them.
func Kind(name string, b []byte) (kind string, picture, read bool) {
	if f, err := recognise(b); err == nil {
		if f.name == "TIFF" && raw(name) {
			return "camera RAW", true, false
		}
		return f.name, true, true
	}
	kind, picture = otherKind(b)
	return kind, picture, false
}

// otherKind is [Kind] for unsupported files.
func otherKind(b []byte) (name string, picture bool) {
	b = b[:min(len(b), KindBytes)]
	for _, k := range kinds {
		if len(b) > k.at && hasMagic(b[k.at:], k.magic) && (k.name != "Netpbm" || b[1] >= '1' &&
			b[1] <= '7') {
			return k.name, k.picture
		}
	}
	text := strings.ToLower(string(bytes.TrimSpace(bytes.TrimPrefix(b, []byte("\ufeff")))))
	switch {
	case strings.HasPrefix(text, "<svg"), strings.HasPrefix(text, "<?xml") && strings.Contains(text, "<svg"):
		return "SVG", true
	case strings.HasPrefix(text, "<!doctype html"), strings.HasPrefix(text, "<html"):
		return htmlPage, false
	}
	return "", false
}

// raw reports whether a file has the extension of a camera's raw files.
func raw(name string) bool {
	for _, ext := range []string{".dng", ".nef", ".nrw", ".cr2", ".arw", ".sr2", ".srf", ".orf", ".rw2",
		".pef",
		".srw", ".3fr", ".iiq", ".erf", ".kdc", ".dcr"} {
		if strings.HasSuffix(strings.ToLower(name), ext) {
			return true
		}
	}
	return false
}
