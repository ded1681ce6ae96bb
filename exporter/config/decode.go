package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/gpumeter/gpumeter/spell"
)

// decoder decodes the value of a setting. Its errors have the same form for all types.
type decoder struct {
	kong.Mapper
	kind string // of value, for errors
}

// boolDecoder decodes a flag that needs no value on the command line.
type boolDecoder struct{ decoder }

// IsBool tells kong that the flag needs no value.
func (boolDecoder) IsBool() bool { return true }

// decoders are those of the types that settings have.
func decoders() []kong.Option {
	known := kong.NewRegistry().RegisterDefaults()
	of := func(t reflect.Type, kind string) decoder { return decoder{known.ForType(t), kind} }
	return []kong.Option{
		kong.TypeMapper(reflect.TypeFor[time.Duration](), of(reflect.TypeFor[time.Duration](), "duration")),
		kong.KindMapper(reflect.Int, of(reflect.TypeFor[int](), "number")),
		kong.KindMapper(reflect.Uint64, of(reflect.TypeFor[uint64](), "number")),
		kong.KindMapper(reflect.String, of(reflect.TypeFor[string](), "text")),
		kong.KindMapper(reflect.Bool, boolDecoder{of(reflect.TypeFor[bool](), "value")}),
	}
}

// Decode implements kong.Mapper.
func (d decoder) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	token := ctx.Scan.Peek()
	text := fmt.Sprint(token.Value)
	if token.IsEOL() {
		text = ""
	}
	err := d.Mapper.Decode(ctx, target)
	enum := ctx.Value.EnumSlice()
	switch {
	case err != nil && !token.IsValue():
		return fmt.Errorf("the value is missing; write %s=VALUE", ctx.Value.ShortSummary())
	case err != nil && d.kind == "value":
		return fmt.Errorf("invalid value %q; use true or false", text)
	case err != nil:
		return fmt.Errorf("invalid %s %q", d.kind, text)
	case ctx.Value.Enum != "" && !slices.Contains(enum, text):
		return fmt.Errorf("invalid value %q%s; use %s", text, spell.Suggest(text, enum), orList(enum))
	}
	return nil
}

// orList joins words as "a, b or c".
func orList(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// readable returns why a value of the environment or the file cannot be decoded.
func readable(flag *kong.Flag, text any) error {
	scan := kong.Scan().PushTyped(text, kong.FlagValueToken)
	return flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, reflect.New(flag.Target.Type()).Elem())
}
