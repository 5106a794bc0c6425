//! Amounts of money for people. Must not know what was bought.

/// Billionths of a US dollar, more digits for less money: `$0.0123`, `$4.50`, `$128`.
pub fn dollars(nanodollars: u64) -> String {
    let dollars = nanodollars as f64 / 1e9;
    if nanodollars == 0 {
        "$0".to_owned()
    } else if dollars < 0.0001 {
        "under $0.0001".to_owned()
    } else if dollars < 0.99995 {
        format!("${dollars:.4}")
    } else if dollars < 99.995 {
        format!("${dollars:.2}")
    } else {
        format!("${dollars:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_amounts_have_more_digits() {
        for (nanodollars, want) in [
            (0, "$0"),
            (1, "under $0.0001"),
            (12_300_000, "$0.0123"),
            (999_960_000, "$1.00"),
            (4_499_900_000, "$4.50"),
            (127_600_000_000, "$128"),
        ] {
            assert_eq!(dollars(nanodollars), want);
        }
    }
}
