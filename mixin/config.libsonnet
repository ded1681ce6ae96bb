// What can be set. The thresholds, durations and severities are in generated/config.libsonnet.
local settings = import 'generated/config.libsonnet';
{
  _config+:: settings {
    // Which series are gpumeter's.
    gpumeterSelector: 'job="gpumeter"',

    // The label that tells clusters apart.
    clusterLabel: 'cluster',

    // Whether the alerts of the object gpumeter-extra are among the others.
    extraAlerts: false,

    // Which other exporters' names are given from ours: 'dcgm-4.8', 'dcgm-4.9', 'l9gpu', 'l9gpu-gen_ai'.
    compat: [],

    // What the titles of dashboards begin with, and by which tags they find each other.
    dashboardNamePrefix: 'gpumeter / ',
    dashboardTags: ['gpumeter'],

    // Whether dashboards let one choose a cluster.
    showMultiCluster: true,

    // Where the runbook of an alert is, by its name in lower case.
    runbookURLPattern: 'https://github.com/gpumeter/gpumeter/blob/main/spec/reference/rules.md#%s',
  },
}
