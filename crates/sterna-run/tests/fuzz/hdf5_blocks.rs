//! Blocks of an HDF5 file that end in a checksum (Jenkins' lookup3), and new checksums for them.

use std::ops::Range;

/// What the blocks of a file's metadata begin with; the last is the superblock.
const SIGNATURES: [&[u8]; 12] = [
    b"OHDR", b"OCHK", b"BTHD", b"BTIN", b"BTLF", b"FRHP", b"FHDB", b"FHIB", b"EAHD", b"FAHD", b"FSHD",
    b"\x89HDF",
];

/// Blocks longer than this are data.
const MOST: usize = 4096;

/// All of them, each without its checksum.
pub fn of(file: &[u8]) -> Vec<Range<usize>> {
    let is_start = |at: &usize| SIGNATURES.iter().any(|signature| file[*at..].starts_with(signature));
    let block = |start: usize| {
        let ends = start + 8..(start + MOST).min(file.len().saturating_sub(4));
        ends.map(|end| start..end).find(|block| stored(file, block) == lookup3(&file[block.clone()]))
    };
    (0..file.len()).filter(is_start).filter_map(block).collect()
}

/// Writes the checksum that a block has now.
pub fn mend(file: &mut [u8], block: &Range<usize>) {
    let sum = lookup3(&file[block.clone()]);
    file[block.end..block.end + 4].copy_from_slice(&sum.to_le_bytes());
}

fn stored(file: &[u8], block: &Range<usize>) -> u32 {
    u32::from_le_bytes(file[block.end..block.end + 4].try_into().expect("four bytes"))
}

/// Bob Jenkins' hash of 2006 with initial value 0, byte by byte.
fn lookup3(data: &[u8]) -> u32 {
    let start = 0xdead_beefu32.wrapping_add(data.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let word = |part: &[u8], at: usize| {
        (0..4).fold(0u32, |sum, i| sum | u32::from(*part.get(at + i).unwrap_or(&0)) << (8 * i))
    };
    let mut rest = data;
    while rest.len() > 12 {
        a = a.wrapping_add(word(rest, 0));
        b = b.wrapping_add(word(rest, 4));
        c = c.wrapping_add(word(rest, 8));
        (a, b, c) = mixed(a, b, c);
        rest = &rest[12..];
    }
    if rest.is_empty() {
        return c;
    }
    a = a.wrapping_add(word(rest, 0));
    b = b.wrapping_add(word(rest, 4));
    c = c.wrapping_add(word(rest, 8));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

fn mixed(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    (a, b, c)
}
