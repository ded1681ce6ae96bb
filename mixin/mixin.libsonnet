// gpumeter's alerts, recording rules and dashboards as a monitoring mixin.
local known = (import 'config.libsonnet')._config;
local objects = {
  infrastructure: import 'generated/infrastructure.libsonnet',
  fleet: import 'generated/fleet.libsonnet',
  inference: import 'generated/inference.libsonnet',
  recording: import 'generated/recording.libsonnet',
  extra: import 'generated/extra.libsonnet',
  'compat-dcgm-4.8': import 'generated/compat-dcgm-4.8.libsonnet',
  'compat-dcgm-4.9': import 'generated/compat-dcgm-4.9.libsonnet',
  'compat-l9gpu': import 'generated/compat-l9gpu.libsonnet',
  'compat-l9gpu-gen_ai': import 'generated/compat-l9gpu-gen_ai.libsonnet',
};

local dashboards = import 'generated/dashboards.libsonnet';
local dashboard = import 'lib/dashboard.libsonnet';

(import 'config.libsonnet') + {
  local checked =
    local unknown = std.setDiff(std.objectFieldsAll($._config), std.objectFieldsAll(known));
    local alerts = std.setDiff(std.objectFieldsAll($._config.severities), std.objectFieldsAll(known.severities));
    local compat = [name for name in $._config.compat if !std.objectHas(objects, 'compat-' + name)];
    if unknown != [] then error 'gpumeter mixin: _config has no key %s' % std.join(', ', unknown)
    else if alerts != [] then error 'gpumeter mixin: _config.severities: no alert %s' % std.join(', ', alerts)
    else if compat != [] then error 'gpumeter mixin: _config.compat: no rules for %s' % std.join(', ', compat)
    else $._config,

  // The rules of each PrometheusRule object, by its name, for who wants some alone.
  gpumeterRules+:: { ['gpumeter-' + name]: { groups: objects[name](checked) } for name in std.objectFields(objects) },

  prometheusAlerts+:: {
    groups+: std.flattenArrays([$.gpumeterRules['gpumeter-' + name].groups for name in ['infrastructure', 'fleet', 'inference'] + (if $._config.extraAlerts then ['extra'] else [])]),
  },
  prometheusRules+:: {
    groups+: std.flattenArrays([$.gpumeterRules['gpumeter-' + name].groups for name in ['recording'] + ['compat-' + name for name in $._config.compat]]),
  },
  grafanaDashboards+:: { [name]: dashboard(checked, dashboards[name]) for name in std.objectFields(dashboards) },
}
