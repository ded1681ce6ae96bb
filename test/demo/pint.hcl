# What pint is told of the rules that the demo loads. Live it is given a Prometheus too.

# A demo is minutes old: looking back over a week, as pint would, it would step over all there is.
check "promql/series" {
  lookbackRange = "10m"
  lookbackStep  = "5s"
}

# The condition of an alert on a device stands in the rule before it, NAME:held, which is there while
# it holds: the alert adds the owner and compares nothing, and that the rule comes and goes is meant.
# What the rule itself reads is checked.
rule {
  match {
    kind = "alerting"
    name = "GPU.+|FleetECCErrorRate"
  }
  ignore {
    name = "GPUIdleWaste"
  }
  disable = ["alerts/comparison", "promql/series"]
}

# Devices that nobody holds come and go; the rule says 0 when there are none.
rule {
  match {
    kind = "recording"
    name = "cluster:gpu_idle_devices:count"
  }
  disable = ["promql/series"]
}

# These name who suffered, and else who owns the device: A or on (…) B. All labels of A stay in that,
# as TestLive sees; pint takes those that are not in on (…) to be lost.
rule {
  match {
    kind = "alerting"
    name = "GPUECCUncorrectableErrors|GPUXIDErrors|GPUXIDApplication"
  }
  disable = ["promql/impossible"]
}

# The same form: the owner of a device's part where there is one.
rule {
  match {
    kind = "recording"
    name = "partition:dcgm_.+_labels:info"
  }
  disable = ["promql/impossible"]
}

# These match by labels that not all series have: the cluster's, which a Prometheus puts on what leaves
# it, and those of Slurm's jobs, which come and go.
rule {
  match {
    kind = "alerting"
    name = "GPUIdleWaste|Inference.+"
  }
  disable = ["promql/vector_matching"]
}
