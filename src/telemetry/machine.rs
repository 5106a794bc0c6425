//! Samples what a run takes of its machine: cores, memory, GPUs. A machine without an NVIDIA driver has no GPUs, which is no
//! error. Decides nothing about when to sample.

use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessesToUpdate, System};

use crate::domain::{GpuSample, MachineSample};

pub struct Sampler {
    system: System,
    own: Pid,
    nvml: Option<Nvml>,
}

impl Sampler {
    /// Takes a while: it looks for a driver, and at the cores for the first time.
    ///
    /// # Errors
    /// A system that tells nothing about itself, in words.
    pub fn new() -> Result<Self, String> {
        let mut system = System::new().map_err(|error| error.to_string())?;
        system.refresh_cpu_usage();
        Ok(Self { system, own: Pid::from_u32(std::process::id()), nvml: Nvml::init().ok() })
    }

    /// The share of busy cores is that since the last sample.
    pub fn sample(&mut self) -> MachineSample {
        self.system.refresh_cpu_usage();
        self.system.refresh_memory();
        // Threads are no processes of their own: their memory would count again.
        let kind = ProcessRefreshKind::nothing().with_memory().without_tasks();
        self.system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
        let processes = self.system.processes();
        let children = processes.values().filter(|process| self.is_descendant(process));
        MachineSample {
            cpu: (f64::from(self.system.global_cpu_usage()) / 100.0).clamp(0.0, 1.0),
            cores: self.system.cpus().len(),
            rss: processes.get(&self.own).map_or(0, Process::memory),
            children_rss: children.map(Process::memory).sum(),
            memory_used: self.system.used_memory(),
            memory_total: self.system.total_memory(),
            gpus: self.nvml.as_ref().map(gpus).unwrap_or_default(),
        }
    }

    fn is_descendant(&self, process: &Process) -> bool {
        // Longer than any chain of processes; parents that change meanwhile cannot make a circle of it.
        const DEPTH: usize = 64;
        let mut parent = process.parent();
        for _ in 0..DEPTH {
            match parent {
                Some(pid) if pid == self.own => return true,
                Some(pid) => parent = self.system.process(pid).and_then(Process::parent),
                None => return false,
            }
        }
        false
    }
}

fn gpus(nvml: &Nvml) -> Vec<GpuSample> {
    let devices = 0..nvml.device_count().unwrap_or(0);
    let sample = |index| {
        let device = nvml.device_by_index(index).ok()?;
        let memory = device.memory_info().ok();
        let watts = |milliwatts: u32| f64::from(milliwatts) / 1000.0;
        Some(GpuSample {
            index,
            name: device.name().unwrap_or_else(|_| "GPU".into()),
            memory_used: memory.as_ref().map_or(0, |memory| memory.used),
            memory_total: memory.as_ref().map_or(0, |memory| memory.total),
            utilisation: device.utilization_rates().ok().map(|rates| f64::from(rates.gpu) / 100.0),
            watts: device.power_usage().ok().map(watts),
            watts_limit: device.enforced_power_limit().ok().map(watts),
            celsius: device.temperature(TemperatureSensor::Gpu).ok().map(f64::from),
        })
    };
    devices.filter_map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_and_this_process_are_sampled_with_their_children() {
        let mut sampler = Sampler::new().unwrap();
        let before = sampler.sample();
        assert!(before.cores > 0 && before.rss > 0 && before.memory_total > before.rss, "{before:?}");
        assert!((0.0..=1.0).contains(&before.cpu));
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let with_child = sampler.sample();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(with_child.children_rss > 0, "{with_child:?}");
        for gpu in &before.gpus {
            assert!(gpu.memory_total > 0 && gpu.memory_used <= gpu.memory_total, "{gpu:?}");
        }
    }
}
