//! Numbers that JSON cannot hold: NaN and the infinities are written as null (`serde_json` does so by itself), and null
//! is read as NaN. Fields name these functions in `deserialize_with`.

use serde::{Deserialize, Deserializer};

/// One number.
pub fn one<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Option::<f64>::deserialize(from).map(|x| x.unwrap_or(f64::NAN))
}

/// A list of numbers.
pub fn list<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let all = Vec::<Option<f64>>::deserialize(from)?;
    Ok(all.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect())
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Both {
        #[serde(deserialize_with = "super::one")]
        one: f64,
        #[serde(deserialize_with = "super::list")]
        list: Vec<f64>,
    }

    #[test]
    fn what_is_no_number_is_null_and_comes_back_as_nan() {
        let both = Both { one: f64::INFINITY, list: vec![1.0, f64::NAN, 0.1] };
        let text = serde_json::to_string(&both).unwrap();
        assert_eq!(text, r#"{"one":null,"list":[1.0,null,0.1]}"#);
        let back: Both = serde_json::from_str(&text).unwrap();
        assert!(back.one.is_nan() && back.list[1].is_nan());
        assert_eq!((back.list[0], back.list[2]), (1.0, 0.1));
        assert!(serde_json::from_str::<Both>(r#"{"one":"many","list":[]}"#).is_err());
        assert!(serde_json::from_str::<Both>(r#"{"list":[]}"#).is_err());
    }
}
