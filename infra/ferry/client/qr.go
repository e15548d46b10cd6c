package client

import (
	"io"
	"strings"

	"rsc.io/qr"

	"ferry/infra/ferry/cli"
)

// quiet is the width of the empty border that a QR code needs.
const quiet = 4

// printQR prints a QR code, two rows to a line. On a terminal it is black on white, whatever the
// terminal's own colours are.
func printQR(to io.Writer, text string) error {
	code, err := qr.Encode(text, qr.L)
	if err != nil {
		return err
	}
	before, after := "", "\n"
	if cli.IsTerminal(to) {
		before, after = "\x1b[38;5;16;48;5;231m", "\x1b[0m\n"
	}
	var b strings.Builder
	for y := -quiet; y < code.Size+quiet; y += 2 {
		b.WriteString(before)
		for x := -quiet; x < code.Size+quiet; x++ {
			b.WriteString(halves(code.Black(x, y), code.Black(x, y+1)))
		}
		b.WriteString(after)
	}
	_, err = io.WriteString(to, b.String())
	return err
}

// halves returns a character whose upper and lower halves are black or not.
func halves(upper, lower bool) string {
	switch {
	case upper && lower:
		return "█"
	case upper:
		return "▀"
	case lower:
		return "▄"
	}
	return " "
}
