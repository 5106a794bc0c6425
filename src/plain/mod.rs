//! plain
