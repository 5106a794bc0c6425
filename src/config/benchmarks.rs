//! Settings of SkillOpt's benchmarks under `[env]`: the name of the benchmark and what its adapter takes. A setting
//! that is not set is the benchmark's own default. Typed and checked here, whether or not this version has the benchmark.

use serde::{Deserialize, Serialize};

use super::group::{group, words};
use super::keys::{Expect, Key, Kind, UsedBy, at_least, key, number, small};

words! {
    /// A benchmark by name; empty: the task that `env.kind` and its keys describe.
    Benchmark {
        None = "",
        Alfworld = "alfworld",
        Babyvision = "babyvision",
        Docvqa = "docvqa",
        Livemathematicianbench = "livemathematicianbench",
        Mathverse = "mathverse",
        Mmrb = "mmrb",
        Officeqa = "officeqa",
        Sealqa = "sealqa",
        Searchqa = "searchqa",
        Spreadsheetbench = "spreadsheetbench",
        Swebench = "swebench",
    }
}

words! {
    /// How finely a model looks at an image; empty: auto.
    ImageDetail { Unset = "", Auto = "auto", Low = "low", High = "high", }
}

words! {
    /// How a spreadsheet task is solved; empty: single.
    SheetMode { Unset = "", Single = "single", Multi = "multi", React = "react", }
}

words! {
    /// Where documents are looked for; empty: offline.
    SearchMode { Unset = "", Offline = "offline", CustomSearch = "custom_search", AzureSearch = "azure_search", }
}

words! {
    /// Which SWE-bench data; empty: lite.
    SwebenchData { Unset = "", Lite = "lite", Verified = "verified", Full = "full", }
}

use Benchmark::{
    Alfworld, Babyvision, Docvqa, Livemathematicianbench, Mathverse, Mmrb, Officeqa, Sealqa, Searchqa,
    Spreadsheetbench, Swebench,
};

const EVERYONE: UsedBy = UsedBy::Everyone;
const TURNS: UsedBy = UsedBy::Benchmarks(&[
    Babyvision,
    Docvqa,
    Livemathematicianbench,
    Mathverse,
    Mmrb,
    Searchqa,
    Spreadsheetbench,
]);
const IMAGES: UsedBy = UsedBy::Benchmarks(&[Babyvision, Docvqa, Mathverse, Mmrb]);
const DEADLINES: UsedBy = UsedBy::Benchmarks(&[Docvqa, Livemathematicianbench, Searchqa, Spreadsheetbench]);
const LIVEMATH: UsedBy = UsedBy::Benchmarks(&[Livemathematicianbench]);
const OFFICEQA: UsedBy = UsedBy::Benchmarks(&[Officeqa]);
const TOOLS: UsedBy = UsedBy::Benchmarks(&[Officeqa, Sealqa]);
const FILES: UsedBy = UsedBy::Benchmarks(&[Spreadsheetbench, Mathverse]);
const SHEETS: UsedBy = UsedBy::Benchmarks(&[Spreadsheetbench]);
const GAMES: UsedBy = UsedBy::Benchmarks(&[Alfworld]);
const JUDGED: UsedBy = UsedBy::Benchmarks(&[Babyvision, Mathverse]);
const MATHVERSE: UsedBy = UsedBy::Benchmarks(&[Mathverse]);
const SWEBENCH: UsedBy = UsedBy::Benchmarks(&[Swebench]);

group! {
    /// What adapters of benchmarks take.
    BenchmarkConfig in [BENCHMARK_ROWS "env"] {
    for EVERYONE {
        name: Benchmark = Benchmark::None, Kind::Choice(Benchmark::WORDS),
            "Benchmark; empty: the task that env.kind describes.";
        out_root: String = String::new(), Kind::Path(Expect::Output),
            "Folder of the run, where neither --name nor run.name names it; empty: a new one under the runs root." changes_on_resume;
        split_output_dir: String = String::new(), Kind::Path(Expect::Output),
            "Folder to which data divided by ratio is also written; empty: nowhere." changes_on_resume;
    }
    for TURNS {
        max_turns: Option<u32> = None, small(1), "Most calls per item.";
    }
    for IMAGES {
        image_detail: ImageDetail = ImageDetail::Unset, Kind::Choice(ImageDetail::WORDS),
            "How finely the model looks at images; empty: auto.";
    }
    for DEADLINES {
        exec_timeout: Option<u64> = None, at_least(0), "Seconds of one call, and of one item with a minute more; 0: no limit.";
    }
    for LIVEMATH {
        shuffle_choices: Option<bool> = None, Kind::Flag, "Shuffle the choices of each question, by train.seed.";
        use_theorem: Option<bool> = None, Kind::Flag, "Show the theorem.";
        use_sketch: Option<bool> = None, Kind::Flag, "Show the proof sketch, which gives the answer away.";
    }
    for TOOLS {
        max_tool_turns: Option<u32> = None, small(1), "Most turns with tool calls per item.";
    }
    for OFFICEQA {
        data_dirs: Vec<String> = Vec::new(), Kind::Folders, "Folders with the documents.";
        use_local_tools: Option<bool> = None, Kind::Flag, "Give the model file tools.";
        search_mode: SearchMode = SearchMode::Unset, Kind::Choice(SearchMode::WORDS),
            "Where documents are looked for; empty: offline.";
        search_provider: String = String::new(), Kind::Text, "Provider named to the search service.";
        search_url: String = String::new(), Kind::Text, "Address of the search service.";
        search_auth_env: String = String::new(), Kind::Text,
            "Environment variable with the search service's Authorization header." changes_on_resume;
        search_max_num_results: Option<u32> = None, small(1), "Most results per query.";
        search_timeout_seconds: Option<f64> = None, number(0.0, 86_400.0, true), "Seconds of one search.";
        max_queries_per_turn: Option<u32> = None, small(1), "Most queries per turn.";
    }
    for FILES {
        data_root: String = String::new(), Kind::Path(Expect::Folder), "Folder with the files that items name.";
    }
    for SHEETS {
        mode: SheetMode = SheetMode::Unset, Kind::Choice(SheetMode::WORDS),
            "How a spreadsheet task is solved; empty: single.";
    }
    for GAMES {
        max_steps: Option<u32> = None, small(1), "Most actions per game.";
        max_api_workers: Option<u32> = None, small(1), "Calls in flight within one turn." changes_on_resume;
    }
    for JUDGED {
        judge_retries: Option<u32> = None, small(0), "Retries of one judgement." changes_on_resume;
    }
    for MATHVERSE {
        problem_version: String = String::new(), Kind::Text, "Version of the problems, like \"Text Lite\".";
        use_text_dominant_reference: Option<bool> = None, Kind::Flag, "Show the text-dominant version as reference.";
    }
    for SWEBENCH {
        dataset_name: SwebenchData = SwebenchData::Unset, Kind::Choice(SwebenchData::WORDS),
            "Which SWE-bench data; empty: lite.";
        hf_split: String = String::new(), Kind::Text, "Split of that data; empty: test.";
        eval_workers: Option<u32> = None, small(1), "Patches tested at once." changes_on_resume;
        step_limit: Option<u32> = None, small(1), "Most agent steps per item.";
        cost_limit: Option<f64> = None, number(0.0, f64::INFINITY, false), "Most dollars per item.";
        timeout_per_instance: Option<u64> = None, at_least(1), "Seconds of one item.";
    }
    }
}
