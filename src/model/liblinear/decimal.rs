//! Numbers as C prints them with `%g`.

/// Appends a number as `%.<precision>g` does: that many significant digits, correctly rounded, without zeros
/// at the end; with an exponent where that is below -4 or not below the precision.
///
/// `precision` is at least 1.
pub fn push(out: &mut Vec<u8>, value: f64, precision: usize) {
    if !value.is_finite() {
        let text = if value.is_nan() { "nan" } else { "inf" };
        let sign = if value.is_sign_negative() { "-" } else { "" };
        out.extend_from_slice(sign.as_bytes());
        out.extend_from_slice(text.as_bytes());
        return;
    }
    // Rust's digits are exact, too, and halves go to the even digit in both.
    let text = format!("{:.*e}", precision - 1, value.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let significant = digits.iter().rposition(|digit| *digit != b'0').map_or(1, |last| last + 1);
    let digits = &digits[..significant];
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if exponent < -4 || exponent >= precision as i32 {
        push_pointed(out, digits, 1);
        out.push(b'e');
        out.push(if exponent < 0 { b'-' } else { b'+' });
        out.extend_from_slice(format!("{:02}", exponent.abs()).as_bytes());
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        out.extend_from_slice(digits);
    } else {
        push_pointed(out, digits, exponent as usize + 1);
    }
}

/// Digits with the point behind the first `whole` of them.
fn push_pointed(out: &mut Vec<u8>, digits: &[u8], whole: usize) {
    if digits.len() <= whole {
        out.extend_from_slice(digits);
        out.resize(out.len() + whole - digits.len(), b'0');
        return;
    }
    out.extend_from_slice(&digits[..whole]);
    out.push(b'.');
    out.extend_from_slice(&digits[whole..]);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn general(value: f64, precision: usize) -> String {
        let mut out = Vec::new();
        push(&mut out, value, precision);
        String::from_utf8(out).unwrap()
    }

    /// Printed by glibc 2.36.
    #[test]
    fn prints_what_c_prints() {
        for (value, precise, short) in [
            (0.0, "0", "0"),
            (-0.0, "-0", "-0"),
            (1.0, "1", "1"),
            (-1.5, "-1.5", "-1.5"),
            (0.1, "0.10000000000000001", "0.1"),
            (1e-4, "0.0001", "0.0001"),
            (1e-5, "1.0000000000000001e-05", "1e-05"),
            (123_456.0, "123456", "123456"),
            (1_234_567.0, "1234567", "1.23457e+06"),
            (999_999.5, "999999.5", "1e+06"),
            (1e16, "10000000000000000", "1e+16"),
            (1e17, "1e+17", "1e+17"),
            (1e100, "1e+100", "1e+100"),
            (f64::MAX, "1.7976931348623157e+308", "1.79769e+308"),
            (5e-324, "4.9406564584124654e-324", "4.94066e-324"),
            (1.0 + 2f64.powi(-17), "1.0000076293945312", "1.00001"), // half: to the even digit
            (1.0 + 3.0 * 2f64.powi(-17), "1.0000228881835938", "1.00002"),
            (0.5, "0.5", "0.5"),
            (2.5, "2.5", "2.5"),
            (f64::INFINITY, "inf", "inf"),
            (f64::NEG_INFINITY, "-inf", "-inf"),
        ] {
            assert_eq!((general(value, 17).as_str(), general(value, 6).as_str()), (precise, short));
        }
    }

    proptest! {
        #[test]
        fn seventeen_digits_give_the_number_back(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let text = general(value, 17);
            prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits, "{}", text);
            prop_assert!(text.bytes().filter(u8::is_ascii_digit).count() <= 17 + 4 + 3, "{}", text);
        }
    }
}
