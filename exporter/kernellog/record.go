package kernellog

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
)

// record is one record of the log, as Documentation/ABI/testing/dev-kmsg of the kernel has it:
// prio,sequence,microseconds,flags;text and perhaps more lines, which begin with a space.
type record struct {
	kernel   bool // said by the kernel itself: a process that may write the log can not claim that
	sequence uint64
	since    time.Duration // from the machine's start, without the time it was suspended
	text     string
}

// lastSequence is more than the kernel reaches: a million records a second take 285 years. After a record
// beyond it all others would seem to be read already.
const lastSequence = 1<<53 - 1

// parseRecord reads the first line of a record.
func parseRecord(line []byte) (r record, ok bool) {
	line, _, _ = bytes.Cut(line, []byte("\n"))
	head, text, ok := bytes.Cut(line, []byte(";"))
	if !ok {
		return record{}, false
	}
	var number [3]uint64
	for i := range number {
		var digits []byte
		if digits, head, ok = bytes.Cut(head, []byte(",")); !ok {
			return record{}, false // the flags are after the numbers, and more may come after them
		}
		var err error
		if number[i], err = strconv.ParseUint(string(digits), 10, 64); err != nil {
			return record{}, false
		}
	}
	const farthest = math.MaxInt64 / uint64(time.Microsecond)
	if number[1] > lastSequence || number[2] > farthest {
		return record{}, false
	}
	// The priority is the facility times 8 and the level. That of the kernel is 0.
	return record{number[0] < 8, number[1], time.Duration(number[2]) * time.Microsecond, string(text)}, true
}

// fallen is the XID of a device that has fallen off the bus.
const fallen = 79

// saying is what a line of NVIDIA's driver says of a device: an XID, that it has fallen off the bus
// without giving the number, or its UUID.
type saying struct {
	pci  string
	code uint64 // 0: no XID
	uuid string // empty: not said
	text string // what follows the code
}

// parseText reads a line of the driver. Only the beginning counts: what follows may be the name of
// a process, which can be anything.
func parseText(text string) (s saying, ok bool) {
	text, ok = strings.CutPrefix(text, "NVRM: ")
	if !ok {
		return saying{}, false
	}
	if rest, is := strings.CutPrefix(text, "Xid ("); is {
		return parseXID(rest)
	}
	rest, is := strings.CutPrefix(text, "GPU ")
	if !is {
		return saying{}, false
	}
	rest, _ = strings.CutPrefix(rest, "at ")
	s.pci, rest, ok = cutAddress(rest)
	if !ok {
		return saying{}, false
	}
	rest = strings.TrimPrefix(rest, ":")
	switch {
	case strings.HasPrefix(rest, " GPU has fallen off the bus"), strings.HasPrefix(rest, " has fallen off the bus"): // now, and before
		return s, true
	case isUUID(strings.TrimPrefix(rest, " ")):
		s.uuid = strings.TrimPrefix(rest, " ")
		return s, true
	}
	return saying{}, false
}

// parseXID reads "PCI:0000:83:00): 79, pid=…" and its variants: without "PCI:", and with the
// instances of MIG behind the address.
func parseXID(text string) (s saying, ok bool) {
	s.pci, text, ok = cutAddress(text)
	if !ok {
		return saying{}, false
	}
	instance, text, ok := strings.Cut(text, "): ")
	if !ok || strings.Trim(instance, " GPUI-:0123456789abcdefABCDEF") != "" || instance != "" && instance[0] != ' ' {
		return saying{}, false
	}
	digits := text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
	text = text[len(digits):]
	if text != "" && text[0] != ',' && text[0] != ' ' {
		return saying{}, false
	}
	const most = 4 // digits; the codes there are have three
	if digits == "" || len(digits) > most {
		return saying{}, false
	}
	s.code, _ = strconv.ParseUint(digits, 10, 64) // so few digits are a number
	s.text = strings.TrimLeft(text, ", ")
	return s, s.code != 0
}

// cutAddress takes a PCI address off the front and normalises it: lower case, a domain of four
// digits unless it needs more, and function 0 where the driver leaves it out.
func cutAddress(text string) (pci, rest string, ok bool) {
	text = strings.TrimPrefix(text, "PCI:")
	domain, text := cutHex(text)
	if len(domain) < 4 || len(domain) > 8 {
		return "", "", false
	}
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	pci = domain
	for range 2 { // bus and device
		var part string
		if text, ok = strings.CutPrefix(text, ":"); !ok {
			return "", "", false
		}
		if part, text = cutHex(text); len(part) != 2 {
			return "", "", false
		}
		pci += ":" + part
	}
	function := "0"
	if after, is := strings.CutPrefix(text, "."); is {
		if function, text = cutHex(after); len(function) != 1 || function[0] > '7' {
			return "", "", false
		}
	}
	return strings.ToLower(pci) + "." + function, text, true
}

// cutHex takes the hexadecimal digits off the front.
func cutHex(text string) (digits, rest string) {
	rest = strings.TrimLeft(text, "0123456789abcdefABCDEF")
	return text[:len(text)-len(rest)], rest
}

// isUUID says whether a text is GPU- and a UUID, and nothing else.
func isUUID(text string) bool {
	text, ok := strings.CutPrefix(text, "GPU-")
	for i, length := range [...]int{8, 4, 4, 4, 12} {
		if i > 0 && ok {
			text, ok = strings.CutPrefix(text, "-")
		}
		var digits string
		digits, text = cutHex(text)
		ok = ok && len(digits) == length
	}
	return ok && text == ""
}
