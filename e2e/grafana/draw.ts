// Draws a dashboard with the components that Grafana's own panels are made of, from answers of a real Prometheus.
// Grafana's server and its panel plugins are in no package registry; its library @grafana/ui has all of a panel but the heatmap.
import type { DataFrame, TimeRange } from '@grafana/data';
import { createElement as element, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import { lastValueFrom } from 'rxjs';

// Not imported, because bundlers find no default exports in what the ES modules of @grafana/ui import.
const {
  applyFieldOverrides, createTheme, dateTime, FieldType, formattedValueToString, getDisplayProcessor, getFieldDisplayValues, identityOverrideProcessor,
  standardFieldConfigEditorRegistry, standardTransformers, standardTransformersRegistry, ThemeContext, toDataFrame, transformDataFrame,
} = require('@grafana/data');
const { BarGauge, BigValue, PanelChrome, Table, TimeSeries } = require('@grafana/ui');

type Labels = Record<string, string>;
type Histogram = { buckets?: [number, string, string, string][] };
/** A series as Prometheus answers it: over time, or at one. */
type Series = { metric: Labels; values?: [number, string][]; value?: [number, string]; histograms?: [number, Histogram][] };
/** What the end-to-end test wrote: answers by panel and query, and the time that they are of, in seconds. */
type Drawing = { dashboard: any; from: number; to: number; answers: Record<string, Series[]> };

/** Pixels of a row of the grid, of the page, and between panels. */
const CELL = 38;
const WIDTH = 1440;
const GAP = 8;
const theme = createTheme({ colors: { mode: 'light' } });
const drawing: Drawing = (window as any).DRAWING;
const range: TimeRange = (() => {
  const [from, to] = [dateTime(drawing.from * 1000), dateTime(drawing.to * 1000)];
  return { from, to, raw: { from, to } };
})();

// Grafana's application registers these with editors, which nothing needs here.
standardFieldConfigEditorRegistry.setInit(() =>
  ['unit', 'min', 'max', 'decimals', 'displayName', 'color', 'thresholds'].map((id) => ({
    id, path: id, name: id, description: id, settings: {}, editor: () => null, override: () => null, process: identityOverrideProcessor,
    shouldApply: () => true,
  })) as any);
standardTransformersRegistry.setInit(() =>
  [standardTransformers.mergeTransformer, standardTransformers.organizeFieldsTransformer, standardTransformers.orderFieldsTransformer,
    standardTransformers.filterFieldsByNameTransformer, standardTransformers.renameFieldsTransformer, standardTransformers.filterFieldsTransformer]
    .map((transformation) => ({ id: transformation.id, transformation: () => Promise.resolve(transformation), name: transformation.name })) as any);

/** NaN, such as a quantile of no requests, is a gap. */
const numbers = (texts: string[]) => texts.map(Number).map((value) => (Number.isFinite(value) ? value : null));

function named(legend: string | undefined, labels: Labels): string {
  const all = Object.entries(labels).filter(([name]) => name !== '__name__').map(([name, value]) => `${name}="${value}"`);
  return legend ? legend.replace(/{{\s*(\w+)\s*}}/g, (_, name) => labels[name] ?? '') : `{${all.join(', ')}}`;
}

/** As Grafana's data source turns answers into frames. */
function frames(panel: any): DataFrame[] {
  return panel.targets.flatMap((target: any) => {
    const series = drawing.answers[`${panel.id}/${target.refId}`] ?? [];
    if (target.format === 'table') {
      if (panel.fieldConfig.defaults.unit) throw new Error(`${panel.title}: a unit of all columns is also that of labels with numbers`);
      const merges = panel.transformations?.some((transformation: any) => transformation.id === 'merge');
      if (merges && series.some((one) => one.metric.__name__)) throw new Error(`${panel.title}: rows with names of metrics do not merge`);
      const labels = [...new Set(series.flatMap((one) => Object.keys(one.metric)))].sort();
      const value = panel.targets.length > 1 ? `Value #${target.refId}` : 'Value';
      return [toDataFrame({ refId: target.refId, fields: [
        { name: 'Time', type: FieldType.time, values: series.map((one) => one.value![0] * 1000) },
        ...labels.map((name) => ({ name, type: FieldType.string, values: series.map((one) => one.metric[name] ?? '') })),
        { name: value, type: FieldType.number, values: numbers(series.map((one) => one.value![1])) },
      ] })];
    }
    return series.map((one) => {
      const points = one.values ?? [one.value!];
      const name = named(target.legendFormat, one.metric);
      return toDataFrame({ refId: target.refId, name, fields: [
        { name: 'Time', type: FieldType.time, values: points.map(([time]) => time * 1000) },
        { name: 'Value', type: FieldType.number, values: numbers(points.map(([, value]) => value)), config: { displayName: name } },
      ] });
    });
  });
}

async function shaped(panel: any): Promise<DataFrame[]> {
  const found = await lastValueFrom(transformDataFrame(panel.transformations ?? [], frames(panel)));
  const defaults = { color: { mode: panel.type === 'timeseries' ? 'palette-classic' : 'thresholds' }, custom: { lineWidth: 1 }, thresholds: { mode: 'absolute', steps: [{ value: -Infinity, color: 'green' }] }, ...panel.fieldConfig.defaults };
  return applyFieldOverrides({
    data: found, fieldConfig: { defaults, overrides: panel.fieldConfig.overrides }, replaceVariables: (text: string) => text, theme, timeZone: 'utc',
    fieldConfigRegistry: standardFieldConfigEditorRegistry,
  } as any);
}

/** One cell per bucket and time, darker with more requests. Of classic buckets, each counts those below it too. */
function heatmap(panel: any, width: number, height: number): ReactNode {
  const series = drawing.answers[`${panel.id}/${panel.targets[0].refId}`] ?? [];
  const cells: { time: number; low: number; high: number; count: number }[] = [];
  for (const [time, histogram] of series.flatMap((one) => one.histograms ?? [])) {
    for (const [, low, high, count] of histogram.buckets ?? []) cells.push({ time, low: +low, high: +high, count: +count });
  }
  const classic = series.filter((one) => one.metric.le).sort((one, other) => +one.metric.le - +other.metric.le);
  classic.forEach((one, at) => {
    const below = new Map(at > 0 ? classic[at - 1].values : []);
    for (const [time, count] of one.values ?? []) {
      cells.push({ time, low: at > 0 ? +classic[at - 1].metric.le : 0, high: +one.metric.le, count: +count - +(below.get(time) ?? 0) });
    }
  });
  const filled = cells.filter((cell) => cell.count > 0 && cell.low > 0 && Number.isFinite(cell.high));
  const [low, high] = [Math.min(...filled.map((cell) => cell.low)), Math.max(...filled.map((cell) => cell.high))];
  const most = Math.max(...filled.map((cell) => cell.count));
  const [left, bottom] = [56, 4];
  const x = (time: number) => left + (time - drawing.from) / (drawing.to - drawing.from) * (width - left);
  const y = (value: number) => (height - bottom) * (1 - Math.log(value / low) / Math.log(high / low));
  const step = (width - left) / (drawing.to - drawing.from);
  const format = getDisplayProcessor({ field: { type: FieldType.number, config: { unit: panel.options.yAxis.unit } }, theme } as any);
  return element('svg', { width, height, className: 'heatmap' },
    ...filled.map((cell, key) => element('rect', {
      key, x: x(cell.time), y: y(cell.high), width: Math.max(step, 1), height: Math.max(y(cell.low) - y(cell.high), 1), fill: theme.visualization.getColorByName('dark-orange'),
      fillOpacity: 0.15 + 0.85 * Math.sqrt(cell.count / most),
    })),
    ...[low, Math.sqrt(low * high), high].map((value, key) => element('text', {
      key: `y${key}`, x: 0, y: Math.min(Math.max(y(value) + 4, 10), height - bottom), fontSize: 12, fill: theme.colors.text.secondary,
    }, formattedValueToString(format(value)))));
}

function content(panel: any, data: DataFrame[], width: number, height: number): ReactNode {
  if (panel.type === 'timeseries') {
    const legend = { showLegend: true, displayMode: 'list', placement: 'bottom', calcs: [] } as any;
    return element(TimeSeries, { frames: data, width, height, timeRange: range, timeZone: 'utc', legend });
  }
  if (panel.type === 'heatmap') return heatmap(panel, width, height);
  if (panel.type === 'table') return element(Table, { data: data[0], width, height, columnMinWidth: 60 });
  const values = getFieldDisplayValues({
    fieldConfig: panel.fieldConfig, reduceOptions: { calcs: ['lastNotNull'], values: false }, replaceVariables: (text: string) => text, theme, data, timeZone: 'utc',
  });
  if (panel.type === 'bargauge') {
    const max = Math.max(...values.map(({ display }: any) => display.numeric));
    const row = Math.min(height / values.length - GAP, 40);
    return values.map(({ display: value, field }: any, key: number) => element(BarGauge, {
      key, value, width, height: row, orientation: 'horizontal', theme, displayMode: 'gradient', field: { ...field, min: 0, max }, display: () => value,
    }));
  }
  const named = panel.options.textMode === 'name';
  const textMode = values.length > 1 && !named ? 'value_and_name' : 'value';
  return element('div', { style: { display: 'flex' } }, values.map(({ display }: any, key: number) => element(BigValue, {
    key, value: named ? { ...display, text: display.title, prefix: undefined, suffix: undefined } : display,
    // Narrower, because the library measures text in its own font.
    width: width / values.length * 0.9, height, theme, textMode, colorMode: 'value', graphMode: 'none',
  })));
}

async function draw() {
  const page = document.getElementById('page')!;
  const unit = WIDTH / 24;
  let bottom = 0;
  const panels: ReactNode[] = [];
  for (const panel of drawing.dashboard.panels) {
    const { x, y, w, h } = panel.gridPos;
    const [width, height] = [w * unit - GAP, h * CELL - GAP];
    const style = { position: 'absolute', left: x * unit + GAP / 2, top: y * CELL + GAP / 2, width, height } as const;
    bottom = Math.max(bottom, (y + h) * CELL);
    if (panel.type === 'row') {
      panels.push(element('div', { key: panel.id, style, className: 'row' }, panel.title));
      continue;
    }
    const data = panel.type === 'heatmap' ? [] : await shaped(panel);
    const children = (inner: number, outer: number) => content(panel, data, inner, outer);
    panels.push(element('div', { key: panel.id, style, 'data-panel': panel.title }, element(PanelChrome, { title: panel.title, width, height, children })));
  }
  page.style.height = `${bottom}px`;
  createRoot(page).render(element(ThemeContext.Provider, { value: theme }, ...panels));
  setTimeout(() => {
    const empty = document.createElement('pre');
    empty.id = 'empty';
    empty.textContent = JSON.stringify([...page.querySelectorAll<HTMLElement>('[data-panel]')].filter(isEmpty).map((panel) => panel.dataset.panel));
    document.body.append(empty);
  }, 5000);
}

/** Whether a panel shows nothing beside its title. */
function isEmpty(panel: HTMLElement): boolean {
  const canvas = panel.querySelector('canvas');
  if (canvas) {
    const pixels = canvas.getContext('2d')!.getImageData(0, 0, canvas.width, canvas.height).data;
    // Axes are grey.
    for (let at = 0; at < pixels.length; at += 4) {
      const [red, green, blue] = pixels.slice(at, at + 3);
      if (Math.max(red, green, blue) - Math.min(red, green, blue) > 40) return false;
    }
    return true;
  }
  const heatmap = panel.querySelector('.heatmap');
  return heatmap ? !heatmap.querySelector('rect') : panel.innerText.trim() === panel.dataset.panel;
}

addEventListener('unhandledrejection', (event) => console.error(event.reason));
void draw();
