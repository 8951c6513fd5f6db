//! Numbers for people, and text that is safe in HTML.

/// Four significant digits at most, thousands grouped, powers of ten for the very large and small.
pub fn number(x: f64) -> String {
    significant(x, 4)
}

/// The same with a given number of significant digits.
pub fn significant(x: f64, digits: usize) -> String {
    if !x.is_finite() {
        return if x.is_nan() { "unknown".into() } else { format!("{}∞", sign(x)) };
    }
    if x == 0.0 {
        return "0".into();
    }
    let exponent = x.abs().log10().floor() as i32;
    if !(-4..7).contains(&exponent) {
        let text = format!("{:.*e}", digits - 1, x.abs());
        let (mantissa, power) = text.split_once('e').expect("a float in scientific notation has an e");
        return format!("{}{}×10{}", sign(x), trim(mantissa), superscript(power));
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    let text = format!("{:.*}", decimals, x.abs());
    let text = if text.contains('.') { trim(&text) } else { &text };
    format!("{}{}", sign(x), grouped(text))
}

/// A value with as many decimals as its error deserves.
pub fn with_error(value: f64, error: f64) -> String {
    if !value.is_finite() || !error.is_finite() {
        return number(value);
    }
    let decimals = if error > 0.0 { (1 - error.log10().floor() as i32).clamp(0, 9) as usize } else { 6 };
    let whole = format!("{:.*}", decimals, value.abs());
    format!(
        "{}{} ± {:.*}",
        if whole.trim_matches(['0', '.']).is_empty() { "" } else { sign(value) },
        grouped(&whole),
        decimals,
        error
    )
}

/// A value with as many decimals as an error beside it has.
pub fn beside_error(value: f64, error: f64) -> String {
    with_error(value, error).split(" ± ").next().unwrap_or_default().into()
}

/// A value of which the error is known elsewhere: with as many decimals as two digits of the error have, where that is a text that people
/// read, else with four digits.
pub fn by_error(value: f64, error: f64) -> String {
    let decimals = 1.0 - error.log10().floor();
    match error > 0.0 && value.abs() < 1e7 && (0.0..=6.0).contains(&decimals) {
        true => beside_error(value, error),
        false => significant(value, 4),
    }
}

/// A whole number, thousands grouped.
pub fn count(n: u64) -> String {
    grouped(&n.to_string())
}

/// A share as a percentage.
pub fn percent(x: f64) -> String {
    let x = 100.0 * x;
    if !x.is_finite() {
        return "unknown".into();
    }
    if x != 0.0 && x.abs() < 10.0 { format!("{}%", significant(x, 2)) } else { format!("{x:.0}%") }
}

/// Seconds as people say them.
pub fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "unknown".into();
    }
    let whole = seconds.round() as u64;
    match seconds {
        s if s < 0.0005 => "0 s".into(),
        s if s < 1.0 => format!("{:.0} ms", 1000.0 * s),
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

/// Text inside elements and attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

fn sign(x: f64) -> &'static str {
    if x < 0.0 { "−" } else { "" }
}

fn trim(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

fn superscript(power: &str) -> String {
    let of = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => char::from_u32(c as u32 - '0' as u32 + '⁰' as u32).unwrap_or(c),
    };
    power.chars().map(of).collect()
}

/// Thousands apart, from five digits on.
fn grouped(text: &str) -> String {
    let (whole, rest) = text.find('.').map_or((text, ""), |at| text.split_at(at));
    if whole.len() < 5 {
        return text.into();
    }
    let mut out = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        for (x, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (-0.5, "−0.5"),
            (1234.56, "1235"),
            (12345.6, "12,346"),
            (0.000123456, "0.0001235"),
            (3.2e-7, "3.2×10⁻⁷"),
            (1.5e12, "1.5×10¹²"),
            (f64::NAN, "unknown"),
            (f64::NEG_INFINITY, "−∞"),
        ] {
            assert_eq!(number(x), text);
        }
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(percent(0.4567), "46%");
        assert_eq!(percent(0.0123), "1.2%");
        assert_eq!(percent(1e308), "unknown");
    }

    #[test]
    fn errors_decide_the_digits() {
        assert_eq!(with_error(164.695_675, 0.0123), "164.696 ± 0.012");
        assert_eq!(with_error(-0.000_1, 0.02), "0.000 ± 0.020");
        assert_eq!(with_error(-12_345.6, 3.0), "−12,345.6 ± 3.0");
        assert_eq!((by_error(0.5, 0.0123), by_error(0.0123, 0.0123)), ("0.500".into(), "0.012".into()));
        assert_eq!(
            (by_error(0.5, 0.0), by_error(0.5, 1e-9), by_error(1234.6, 1e3)),
            ("0.5".into(), "0.5".into(), "1235".into())
        );
        assert_eq!(by_error(f64::NAN, 0.1), "unknown");
    }

    #[test]
    fn durations() {
        assert_eq!(duration(0.25), "250 ms");
        assert_eq!(duration(12.3), "12 s");
        assert_eq!(duration(754.0), "12 min 34 s");
        assert_eq!(duration(7300.0), "2 h 01 min");
    }

    #[test]
    fn nothing_breaks_out_of_text() {
        assert_eq!(escape("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
    }
}
