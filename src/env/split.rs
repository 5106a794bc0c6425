//! Divides data into train, selection and test: by ratio with the original's generator, or by folders. Owns the counts,
//! the split files and the checks across splits; must not look into items beyond their ids.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::{EnvConfig, SplitMode};
use crate::domain::Split;

use super::demo;
use super::error::DataError;
use super::mersenne::Random;
use super::rows::{PlacedItem, read_items};

/// Items per split in their final order, before any limit.
#[derive(Debug)]
pub(super) struct Splits {
    pub(super) parts: [Vec<PlacedItem>; 3],
    /// What was divided by ratio; `None` when the splits were given or generated.
    divided: Option<Division>,
}

#[derive(Debug)]
struct Division {
    source: String,
    ratio: String,
    seed: u64,
}

/// `split_manifest.json`, in the original's field names.
#[derive(Serialize)]
struct Manifest<'a> {
    source_data_path: &'a str,
    split_mode: &'static str,
    split_ratio: &'a str,
    split_seed: u64,
    counts: ManifestCounts,
}

#[derive(Serialize)]
struct ManifestCounts {
    train: usize,
    val: usize,
    test: usize,
}

impl Splits {
    /// Loads the data that `config` names. `split_seed` 0 means `train_seed`.
    pub(super) fn load(config: &EnvConfig, train_seed: u64) -> Result<Self, DataError> {
        let seed = if config.split_seed == 0 { train_seed } else { config.split_seed };
        let splits = match config.split_mode {
            SplitMode::SplitDir => Self { parts: read_split_folder(config)?, divided: None },
            SplitMode::Ratio => match config.data_path.strip_prefix("demo:") {
                Some(family) => Self { parts: demo::generate(family, seed)?, divided: None },
                None => divide_by_ratio(config, seed)?,
            },
        };
        splits.refuse_repeated_ids()?;
        Ok(splits)
    }

    /// All items in the order people find them in the files, which a cut by ratio has shuffled.
    pub(super) fn in_file_order(&self) -> Vec<(Split, &PlacedItem)> {
        let mut items: Vec<_> = Split::ALL
            .into_iter()
            .zip(&self.parts)
            .flat_map(|(s, part)| part.iter().map(move |p| (s, p)))
            .collect();
        if self.divided.is_some() {
            items.sort_by_key(|(_, placed)| placed.place.row);
        }
        items
    }

    fn refuse_repeated_ids(&self) -> Result<(), DataError> {
        let mut seen: HashMap<&str, (Split, &PlacedItem)> = HashMap::new();
        for (split, placed) in self.in_file_order() {
            if let Some((earlier_split, earlier)) = seen.insert(&placed.item.id, (split, placed)) {
                let (id, at) = (&placed.item.id, &earlier.place);
                // A ratio cut comes after the reading, so there the same file twice is no leak yet.
                let problem = if earlier_split == split || self.divided.is_some() {
                    format!("id {id:?} is already used by {at}; give every row an id of its own")
                } else {
                    format!(
                        "id {id:?} is already in the {} split ({at}); an item may be in one split only",
                        earlier_split.name()
                    )
                };
                return Err(DataError::row(&placed.place, problem));
            }
        }
        Ok(())
    }

    /// [`Self::write`]s data divided by ratio into a folder of its own below `root`, named after what divided it.
    pub(super) fn write_below(&self, root: &Path, env: &str) -> Result<(), DataError> {
        let Some(Division { ratio, seed, .. }) = &self.divided else { return Ok(()) };
        let name = format!("{env}_{}_seed{seed}", ratio.replace(':', "-"));
        self.write(&root.join("_generated_splits").join(name))
    }

    /// Writes `train|val|test/items.json` and `split_manifest.json` under `folder` for data divided by ratio; nothing
    /// for other data. Rewrites what an earlier start left.
    pub(super) fn write(&self, folder: &Path) -> Result<(), DataError> {
        let Some(division) = &self.divided else { return Ok(()) };
        for (split, part) in Split::ALL.into_iter().zip(&self.parts) {
            let rows: Vec<_> = part.iter().map(|placed| &placed.item.fields).collect();
            write_json(&folder.join(split.name()).join("items.json"), &rows)?;
        }
        let [train, val, test] = self.parts.each_ref().map(Vec::len);
        let manifest = Manifest {
            source_data_path: &division.source,
            split_mode: "ratio",
            split_ratio: &division.ratio,
            split_seed: division.seed,
            counts: ManifestCounts { train, val, test },
        };
        write_json(&folder.join("split_manifest.json"), &manifest)
    }
}

fn divide_by_ratio(config: &EnvConfig, seed: u64) -> Result<Splits, DataError> {
    let ratio =
        parse_ratio(&config.split_ratio).map_err(|problem| DataError::setting("env.split_ratio", problem))?;
    if config.data_path.is_empty() {
        return Err(DataError::setting(
            "env.data_path",
            "is empty; name a .json or .jsonl file, or \"demo:city\"",
        ));
    }
    let file = data_file(Path::new(&config.data_path))?;
    let mut rest = read_items(&file)?;
    Random::new(seed).shuffle(&mut rest);
    let [train, val, _] = split_counts(rest.len(), ratio);
    let test = rest.split_off(train + val);
    let val = rest.split_off(train);
    let division = Division {
        source: config.data_path.clone(),
        ratio: ratio.map(|part| part.to_string()).join(":"),
        seed,
    };
    Ok(Splits { parts: [rest, val, test], divided: Some(division) })
}

/// `a:b:c` as three positive whole numbers; blank parts are passed over.
pub fn parse_ratio(text: &str) -> Result<[u32; 3], String> {
    let parts: Vec<&str> = text.split(':').map(str::trim).filter(|part| !part.is_empty()).collect();
    let numbers: Option<Vec<u32>> =
        parts.iter().map(|part| part.parse().ok().filter(|number: &u32| *number > 0)).collect();
    numbers.and_then(|numbers| <[u32; 3]>::try_from(numbers).ok()).ok_or_else(|| {
        format!("{text:?} is not three positive whole numbers such as \"2:1:7\" (train:val:test)")
    })
}

/// How many of `total` items go to train, val and test: floored shares, the remainder one by one to the largest
/// fraction, then the larger weight, then the earlier split. Shares are 64-bit floats as in the original.
pub fn split_counts(total: usize, ratio: [u32; 3]) -> [usize; 3] {
    let sum: f64 = ratio.iter().map(|part| f64::from(*part)).sum();
    let shares = ratio.map(|part| total as f64 * f64::from(part) / sum);
    let mut counts = shares.map(|share| share.floor() as usize);
    let mut order = [0, 1, 2];
    order.sort_by(|&left, &right| {
        let fraction = |i: usize| shares[i] - shares[i].floor();
        fraction(right).total_cmp(&fraction(left)).then(ratio[right].cmp(&ratio[left]))
    });
    let missing = total.saturating_sub(counts.iter().sum());
    for &i in order.iter().cycle().take(missing) {
        counts[i] += 1;
    }
    counts
}

/// The data file itself, or the only one in a folder that is not already divided.
fn data_file(path: &Path) -> Result<PathBuf, DataError> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    if Split::ALL.iter().any(|split| path.join(split.name()).is_dir()) {
        return Err(DataError::file(
            path,
            "is already divided into train, val and test; set env.split_mode = \"split_dir\" and env.split_dir to it",
        ));
    }
    let mut files = files_with(path, "json")?;
    files.extend(files_with(path, "jsonl")?);
    match files.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(DataError::file(path, "holds no .json or .jsonl file")),
        [_, ..] => Err(DataError::file(path, "holds several data files; name one of them in env.data_path")),
    }
}

fn read_split_folder(config: &EnvConfig) -> Result<[Vec<PlacedItem>; 3], DataError> {
    if config.split_dir.is_empty() {
        return Err(DataError::setting(
            "env.split_dir",
            "is empty; name the folder with train/, val/ and test/",
        ));
    }
    let folder = Path::new(&config.split_dir);
    let read = |split: Split| {
        let part = folder.join(split.name());
        if !part.is_dir() {
            return Err(DataError::file(
                &part,
                "is not a folder; env.split_dir needs train/, val/ and test/",
            ));
        }
        // The original takes the first .json by name; JSON lines are our addition and come after it.
        let mut files = files_with(&part, "json")?;
        files.extend(files_with(&part, "jsonl")?);
        match files.first() {
            Some(file) => read_items(file),
            None => Err(DataError::file(&part, "holds no .json or .jsonl file")),
        }
    };
    Ok([read(Split::Train)?, read(Split::Val)?, read(Split::Test)?])
}

/// Files with this extension, by name.
fn files_with(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, DataError> {
    let unreadable = |error: std::io::Error| DataError::file(folder, format!("cannot be read: {error}"));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|found| found == extension) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), DataError> {
    let failed = |error: std::io::Error| DataError::file(path, format!("cannot be written: {error}"));
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    serde_json::to_writer_pretty(&mut file, value).map_err(|error| failed(error.into()))?;
    file.write_all(b"\n").map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
