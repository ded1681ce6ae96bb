package kubernetes

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is limited here
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Limits of what a peer may send. A node with 250 pods and 64 devices needs a tenth of them, and all that is
// read at once fits a process of 64 MiB.
const (
	mostReceived   = 4 << 20  // bytes of one call of pod resources
	mostPodList    = 8 << 20  // bytes of one list of the Pods API, which has whole pods
	mostEvent      = 2 << 20  // bytes of one event of a watch, and of one item of a list; an object in etcd has at most 1.5 MiB
	mostBody       = 32 << 20 // bytes of one list that is decoded item by item
	mostList       = 8 << 20  // bytes of one list of metadata, which client-go decodes at once
	mostCheckpoint = 4 << 20  // bytes of the checkpoint
	mostFields     = 1 << 16  // messages, strings and byte strings of one answer in protobuf
	mostObjects    = 1 << 17  // objects and lists of one answer in JSON
	mostPods       = 4096     // pods that are kept
)

// countedCodec is gRPC's codec for protobuf that first counts the fields of an answer: an empty message has
// two bytes on the wire and a hundred and more in memory.
type countedCodec struct{ encoding.CodecV2 }

func newCountedCodec() countedCodec { return countedCodec{encoding.GetCodecV2("proto")} }

// Unmarshal implements encoding.CodecV2.
func (c countedCodec) Unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(proto.Message)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	raw := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer raw.Free()
	left := mostFields
	if err := countFields(raw.ReadOnlyData(), message.ProtoReflect().Descriptor(), &left); err != nil {
		return err
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{raw}, v)
}

// countFields counts the fields of a message that have a length, and those in them.
func countFields(raw []byte, of protoreflect.MessageDescriptor, left *int) error {
	return fields(raw, func(n protowire.Number, v []byte, _ uint64) error {
		if v == nil {
			return nil
		}
		f := of.Fields().ByNumber(n)
		*left--
		if f != nil && f.IsPacked() { // numbers have eight bytes in memory, and one or two on the wire
			*left -= len(v) / 32
		}
		if *left < 0 {
			return fmt.Errorf("%w: %d fields", errTooLarge, mostFields)
		}
		if f != nil && f.Message() != nil {
			return countFields(v, f.Message(), left)
		}
		return nil
	})
}

// within are the limits of a call.
func within(most int) grpc.CallOption { return grpc.MaxCallRecvMsgSize(most) }

// limitBody limits the answer to a request: a watch by its events, metadata as a whole, and anything else,
// which is decoded as it comes in, by its length.
func limitBody(r *http.Request, answer *http.Response) error {
	switch {
	case r.URL.Query().Has("watch"):
		answer.Body = &watchBody{ReadCloser: answer.Body, framed: strings.Contains(answer.Header.Get("Content-Type"), "protobuf")}
	case strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata"):
		raw, err := readAll(answer.Body, r.URL.Path, mostList)
		answer.Body.Close() //nolint:errcheck // it was only read
		if err == nil {
			err = countObjects(raw)
		}
		if err != nil {
			return fmt.Errorf("kubernetes: %w", err)
		}
		answer.Body = io.NopCloser(bytes.NewReader(raw))
	default:
		answer.Body = &limitedBody{answer.Body, mostBody}
	}
	return nil
}

// countObjects counts what becomes an object in memory: in JSON by the brackets that open one, in protobuf
// three messages deep, which are those of the metadata of a list's items.
func countObjects(raw []byte) error {
	if wire, ok := bytes.CutPrefix(raw, []byte("k8s\x00")); ok {
		left := mostObjects
		return fields(wire, func(n protowire.Number, list []byte, _ uint64) error {
			if n != 2 { // the list in its envelope
				return nil
			}
			return countNested(list, 3, &left)
		})
	}
	if n := bytes.Count(raw, []byte("{")) + bytes.Count(raw, []byte("[")); n > mostObjects {
		return fmt.Errorf("%w: %d objects", errTooLarge, mostObjects)
	}
	return nil
}

func countNested(raw []byte, deep int, left *int) error {
	return fields(raw, func(_ protowire.Number, v []byte, _ uint64) error {
		if v == nil {
			return nil
		}
		if *left--; *left < 0 {
			return fmt.Errorf("%w: %d objects", errTooLarge, mostObjects)
		}
		if deep > 1 {
			if err := countNested(v, deep-1, left); *left < 0 { // any other error: it is a text
				return err
			}
		}
		return nil
	})
}

// watchBody is the stream of a watch, which has no end. Its events do: in protobuf each follows its length, in
// JSON each is a line.
type watchBody struct {
	io.ReadCloser
	framed bool
	head   []byte // of a length
	left   int    // bytes of the frame
	line   int    // bytes since the last line ended
}

// Read implements io.Reader.
func (b *watchBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	large := b.lines
	if b.framed {
		large = b.frames
	}
	if large(p[:n]) {
		return 0, fmt.Errorf("kubernetes: event of a watch: %w: %d bytes", errTooLarge, mostEvent)
	}
	return n, err
}

func (b *watchBody) lines(p []byte) (large bool) {
	for {
		at := bytes.IndexByte(p, '\n')
		if at < 0 {
			b.line += len(p)
			return b.line > mostEvent
		}
		if b.line+at > mostEvent {
			return true
		}
		b.line, p = 0, p[at+1:]
	}
}

func (b *watchBody) frames(p []byte) (large bool) {
	for len(p) > 0 {
		if b.left > 0 {
			n := min(b.left, len(p))
			b.left, p = b.left-n, p[n:]
			continue
		}
		n := min(4-len(b.head), len(p))
		b.head, p = append(b.head, p[:n]...), p[n:]
		if len(b.head) < 4 {
			return false
		}
		length := binary.BigEndian.Uint32(b.head)
		if length > mostEvent {
			return true
		}
		b.left, b.head = int(length), b.head[:0]
	}
	return false
}

// itemReader limits what is read for one item of a list.
type itemReader struct {
	io.Reader
	left int
}

func (r *itemReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("kubernetes: item of a list: %w: %d bytes", errTooLarge, mostEvent)
	}
	n, err := r.Reader.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}
