//! What the command line says about the screen of the workbench.

use std::path::PathBuf;

use crate::tui::{Wishes, parse_fps};

#[derive(clap::Args, Clone, Debug, Default)]
pub struct Screen {
    /// Colours of the workbench: dark, light, high-contrast, cb-blue-orange, cb-red-teal, mono, auto, or a theme file
    #[arg(long, value_name = "NAME|FILE", help_heading = "Screen")]
    theme: Option<String>,
    /// Key bindings instead of those of `$XDG_CONFIG_HOME/planish/keymap.toml`
    #[arg(long, value_name = "FILE", help_heading = "Screen")]
    keymap: Option<PathBuf>,
    /// Most frames a second for news of the run (keys are always answered at 30)
    #[arg(long, value_name = "N", value_parser = parse_fps, help_heading = "Screen")]
    fps: Option<u16>,
    /// For slow lines: 2 frames a second, sparse charts, no moving marks, no syntax colour
    #[arg(long, help_heading = "Screen")]
    low_bandwidth: bool,
    /// Nothing on the screen moves by itself
    #[arg(long, help_heading = "Screen")]
    reduced_motion: bool,
    /// Let the mouse focus, select and scroll
    #[arg(long, help_heading = "Screen")]
    mouse: bool,
}

impl From<&Screen> for Wishes {
    fn from(screen: &Screen) -> Self {
        Self {
            theme: screen.theme.clone(),
            keymap: screen.keymap.clone(),
            fps: screen.fps,
            low_bandwidth: screen.low_bandwidth,
            reduced_motion: screen.reduced_motion,
            mouse: screen.mouse,
        }
    }
}
