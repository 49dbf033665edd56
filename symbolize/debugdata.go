package symbolize

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// Limits of .gnu_debugdata, the compressed symbol table that Fedora ships in its binaries.
const (
	maxDebugdata     = 16 << 20 // bytes compressed
	maxDebugdataELF  = 64 << 20 // bytes unpacked
	maxDebugdataDict = 64 << 20 // bytes of dictionary a stream may ask for (xz -9)
)

// debugdataTable reads the symbols of the small ELF file in .gnu_debugdata. It holds those
// that .dynsym lacks.
func (f *File) debugdataTable() (*table, error) {
	section := f.elf.Section(".gnu_debugdata")
	if section == nil {
		return nil, nil
	}
	packed, err := f.SectionData(section.Name, maxDebugdata)
	if err != nil {
		return nil, err
	}
	image, err := unpackXZ(packed)
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", section.Name, err)
	}
	inner, err := openELF(bytes.NewReader(image), int64(len(image)))
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", section.Name, err)
	}
	t, err := readTable(inner, elf.SHT_SYMTAB)
	if t != nil {
		t.held = int64(len(image))
	}
	return t, err
}

var errXZ = errors.New("not an xz stream of LZMA2 blocks")

// unpackXZ decompresses the first stream of an xz file. The container is read here because
// a block may ask for a dictionary of 4 GiB, which the xz library would allocate unasked;
// the checksums are not compared: what comes out is read as hostile anyway.
func unpackXZ(packed []byte) ([]byte, error) {
	const magic, headerSize = "\xfd7zXZ\x00", 12
	if len(packed) < headerSize || string(packed[:len(magic)]) != magic {
		return nil, errXZ
	}
	checkSizes := map[byte]int64{0: 0, 1: 4, 4: 8, 10: 32} // none, CRC32, CRC64, SHA-256
	checkSize, known := checkSizes[packed[7]]
	if !known {
		return nil, errXZ
	}
	var image bytes.Buffer
	rest := bytes.NewReader(packed[headerSize:])
	for {
		dictionary, err := blockHeader(rest)
		if err != nil {
			return nil, err
		}
		if dictionary == 0 {
			return image.Bytes(), nil
		}
		if err := unpackBlock(&image, rest, dictionary); err != nil {
			return nil, err
		}
		if padding := -(rest.Size() - int64(rest.Len())) & 3; padding+checkSize > 0 {
			if _, err := rest.Seek(padding+checkSize, io.SeekCurrent); err != nil {
				return nil, err
			}
		}
	}
}

// blockHeader reads the header of a block and returns the dictionary it asks for, in bytes;
// 0 at the index, which ends the blocks.
func blockHeader(rest *bytes.Reader) (int, error) {
	size, err := rest.ReadByte()
	if err != nil || size == 0 {
		return 0, err
	}
	header := make([]byte, int(size)*4+3) // the size counts words, itself included, less one
	if _, err := io.ReadFull(rest, header); err != nil {
		return 0, errXZ
	}
	flags, fields := header[0], bytes.NewReader(header[1:])
	for _, sizeGiven := range []byte{0x40, 0x80} { // compressed, uncompressed
		if flags&sizeGiven != 0 {
			if _, err := binary.ReadUvarint(fields); err != nil {
				return 0, errXZ
			}
		}
	}
	var filter [3]byte // identifier, length of its properties, the property: the dictionary
	if _, err := io.ReadFull(fields, filter[:]); err != nil {
		return 0, errXZ
	}
	if flags&3 != 0 || filter[0] != 0x21 || filter[1] != 1 {
		return 0, errXZ
	}
	dictionary, err := lzma.DecodeDictCap(filter[2])
	if err != nil {
		return 0, err
	}
	if dictionary > maxDebugdataDict {
		return 0, fmt.Errorf("dictionary of %d bytes: %w", dictionary, errLimit)
	}
	return int(dictionary), nil
}

// unpackBlock appends what the block holds to the image.
func unpackBlock(image *bytes.Buffer, rest *bytes.Reader, dictionary int) error {
	return guard("LZMA2", func() error {
		reader, err := lzma.Reader2Config{DictCap: max(dictionary, lzma.MinDictCap)}.NewReader2(rest)
		if err != nil {
			return err
		}
		left := int64(maxDebugdataELF - image.Len())
		n, err := io.Copy(image, io.LimitReader(reader, left+1))
		if err == nil && n > left {
			return errLimit
		}
		return err
	})
}
