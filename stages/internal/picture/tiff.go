package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"

	"golang.org/x/image/tiff"
)

// Tags of TIFF's directories, TIFF 6.0 section 8.
const (
	tagSubfile = 254
	tagPlanar  = 284
)

// decodeTIFF reads the only picture of a TIFF file of 1, 8 or 16 bits a channel, or the first, where smaller
// versions of it follow. Colours that are multiplied with alpha are divided by it.
func decodeTIFF(b []byte) (image.Image, error) {
	if err := onePicture(b); err != nil {
		return nil, err
	}
	img, err := tiff.Decode(bytes.NewReader(b))
	var unread tiff.UnsupportedError
	if errors.As(err, &unread) {
		return nil, fmt.Errorf("%w: %s", errUnread, string(unread))
	}
	return img, err
}

// wholeFile returns a TIFF file; an EXIF block is one, too.
func wholeFile(b []byte) []byte { return b }

// errUnread is the cause of the error of an intact file of an unsupported kind.
var errUnread = errors.New("of a kind that isn't read")

// onePicture rejects a TIFF file of several pictures, of a preview, or of a plane for each channel.
func onePicture(b []byte) error {
	var order binary.ByteOrder = binary.LittleEndian
	if b[0] == 'M' {
		order = binary.BigEndian
	}
	const mostPages = 1 << 10 // directories may form a loop
	at := uint64(order.Uint32(b[4:]))
	for page := 0; at != 0 && page < mostPages; page++ {
		if at+2 > uint64(len(b)) {
			return errTruncated
		}
		n := uint64(order.Uint16(b[at:]))
		end := at + 2 + 12*n
		if end+4 > uint64(len(b)) {
			return errTruncated
		}
		reduced := false
		for e := b[at+2 : end]; len(e) > 0; e = e[12:] {
			switch value := order.Uint16(e[8:]); order.Uint16(e) {
			case tagSubfile:
				reduced = order.Uint32(e[8:])&1 != 0
			case tagPlanar:
				if value == 2 && page == 0 {
					return fmt.Errorf("%w: a plane for each channel", errUnread)
				}
			}
		}
		switch {
		case reduced && page == 0:
			return fmt.Errorf("%w: its first picture is a preview", errUnread)
		case !reduced && page > 0:
			return fmt.Errorf("%w: several pictures", errUnread)
		}
		at = uint64(order.Uint32(b[end:]))
	}
	return nil
}

func tiffSize(b []byte) (w, h int, err error) {
	c, err := tiff.DecodeConfig(bytes.NewReader(b))
	var unread tiff.UnsupportedError
	if errors.As(err, &unread) {
		err = fmt.Errorf("%w: %s", errUnread, string(unread))
	}
	return c.Width, c.Height, err
}
