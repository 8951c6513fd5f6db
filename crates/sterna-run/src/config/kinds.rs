//! Sections whose fields depend on their `kind`: an enum with one struct for each.
//!
//! A section may hold fields of kinds that are not in use, as resolved configs and `--set kind=…` leave them; they have
//! no effect. A field that no kind has is an error, and so is a value that none of the kinds that have the field can take:
//! both are raised while the field is being read, so that the error points at it.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, de};
use std::fmt;

/// One kind, as the reader of a section sees it.
pub struct Known {
    /// What `kind` says.
    pub name: &'static str,
    /// Its fields.
    pub fields: fn() -> &'static [&'static str],
    /// Whether it can take these.
    pub takes: fn(toml::Table) -> Result<(), toml::de::Error>,
}

/// Reads a section: its kind, if it says one, and all fields.
pub fn read<'de, D: Deserializer<'de>>(
    from: D,
    kinds: &'static [Known],
) -> Result<(Option<&'static str>, toml::Table), D::Error> {
    from.deserialize_map(Section(kinds))
}

/// Names of a struct's fields: serde tells them to whoever deserializes it.
pub fn fields_of<T: Deserialize<'static>>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    let _ = T::deserialize(Asker(&mut fields));
    fields
}

struct Asker<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Asker<'_> {
    type Error = de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Error::custom("only structs are asked"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        Err(Error::custom("that was all"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct Section(&'static [Known]);

impl<'de> Visitor<'de> for Section {
    type Value = (Option<&'static str>, toml::Table);

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut kind, mut table) = (None, toml::Table::new());
        while let Some(key) = map.next_key_seed(Key(self.0))? {
            if key == "kind" {
                kind = Some(map.next_value_seed(Name(self.0))?);
            } else {
                let value = map.next_value_seed(Field { kinds: self.0, key: &key })?;
                table.insert(key, value);
            }
        }
        Ok((kind, table))
    }
}

/// The name of a field that some kind has.
struct Key(&'static [Known]);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        let key = String::deserialize(from)?;
        let mut known = vec!["kind"];
        for field in self.0.iter().flat_map(|kind| (kind.fields)()) {
            if !known.contains(field) {
                known.push(field);
            }
        }
        if known.contains(&key.as_str()) {
            return Ok(key);
        }
        let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        Err(D::Error::custom(format!("unknown field `{key}`, expected one of {list}")))
    }
}

/// The name of a kind.
struct Name(&'static [Known]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<&'static str, D::Error> {
        let name = String::deserialize(from)?;
        if let Some(kind) = self.0.iter().find(|kind| kind.name == name) {
            return Ok(kind.name);
        }
        let list = self.0.iter().map(|kind| format!("`{}`", kind.name)).collect::<Vec<_>>().join(", ");
        Err(D::Error::custom(format!("unknown variant `{name}`, expected one of {list}")))
    }
}

/// A value that some kind can take.
struct Field<'a> {
    kinds: &'static [Known],
    key: &'a str,
}

impl<'de> DeserializeSeed<'de> for Field<'_> {
    type Value = toml::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<toml::Value, D::Error> {
        let value = toml::Value::deserialize(from)?;
        let mut refused = None;
        for kind in self.kinds.iter().filter(|kind| (kind.fields)().contains(&self.key)) {
            match (kind.takes)(toml::Table::from_iter([(self.key.to_string(), value.clone())])) {
                Ok(()) => return Ok(value),
                Err(error) => refused = Some(error),
            }
        }
        Err(D::Error::custom(refused.as_ref().map_or("no kind takes it", |error| error.message())))
    }
}

/// An enum of kinds, one struct each: how sections of the config are read and written, and what all kinds can be asked.
macro_rules! kinds {
    (
        $(#[$about:meta])*
        pub enum $name:ident: dyn $role:path, by default $default:ident {
            $( $(#[$of_kind:meta])* $variant:ident($fields:ty) = $word:literal, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(tag = "kind")]
        pub enum $name {
            $( $(#[$of_kind])* #[serde(rename = $word)] $variant($fields), )*
        }

        impl $name {
            const KNOWN: &'static [$crate::config::kinds::Known] = &[$(
                $crate::config::kinds::Known {
                    name: $word,
                    fields: $crate::config::kinds::fields_of::<$fields>,
                    takes: |table| table.try_into::<$fields>().map(drop),
                },
            )*];

            /// What `kind` says in the config.
            pub fn kind(&self) -> &'static str {
                match self { $( Self::$variant(_) => $word, )* }
            }

            /// One of each kind, with nothing but defaults.
            pub fn all() -> Vec<Self> {
                vec![$( Self::$variant(Default::default()), )*]
            }

            fn role(&self) -> &dyn $role {
                match self { $( Self::$variant(fields) => fields, )* }
            }

            /// Whether its kind has a field of this name.
            pub fn has(&self, field: &str) -> bool {
                let known = Self::KNOWN.iter().find(|kind| kind.name == self.kind());
                known.is_some_and(|kind| (kind.fields)().contains(&field))
            }
        }

        impl AsMut<dyn $role> for $name {
            fn as_mut(&mut self) -> &mut (dyn $role + 'static) {
                match self { $( Self::$variant(fields) => fields, )* }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::$default(Default::default())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let (kind, table) = $crate::config::kinds::read(from, Self::KNOWN)?;
                let read = match kind {
                    $( Some($word) => table.try_into().map(Self::$variant), )*
                    _ => table.try_into().map(Self::$default),
                };
                read.map_err(|error| serde::de::Error::custom(error.message()))
            }
        }

        $( impl From<$fields> for $name {
            fn from(fields: $fields) -> Self {
                Self::$variant(fields)
            }
        } )*
    };
}
pub(crate) use kinds;
