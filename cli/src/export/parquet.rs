//! The rows of a trial as columns.

use std::sync::Arc;

use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use serde_json::{Map, Value};

use super::error::ExportError;
use super::rows::{Row, rows};
use crate::reading::Reading;

/// The columns of text; all others are numbers.
const TEXT: [&str; 4] = ["benchmark", "runId", "setting", "operation"];

type Fields = Map<String, Value>;

pub fn write(reading: &Reading) -> Result<Vec<u8>, ExportError> {
    let fields =
        |row: &Row| -> Result<Fields, serde_json::Error> { serde_json::from_value(serde_json::to_value(row)?) };
    let failed = |error| ExportError::Write("Parquet", error);
    let columns = fields(&Row::default()).map_err(|error| failed(error.into()))?;
    let rows = rows(reading)?.iter().map(fields).collect::<Result<Vec<_>, _>>();
    file(&columns, &rows.map_err(|error| failed(error.into()))?).map_err(|error| failed(error.into()))
}

fn file(columns: &Fields, rows: &[Fields]) -> Result<Vec<u8>, ParquetError> {
    let is_text = |name: &str| TEXT.contains(&name);
    let column = |name: &String| {
        if is_text(name) { format!("optional binary {name} (UTF8);") } else { format!("optional int64 {name};") }
    };
    let schema = format!("message seconds {{ {} }}", columns.keys().map(column).collect::<String>());
    let schema = Arc::new(parse_message_type(&schema)?);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::builder().build()))?;
    let mut group = file.next_row_group()?;
    for name in columns.keys() {
        let Some(mut column) = group.next_column()? else { break };
        let values = || rows.iter().map(|row| row.get(name).unwrap_or(&Value::Null));
        // 1 for a value, and 0 for none.
        let levels: Vec<i16> = values().map(|value| i16::from(!value.is_null())).collect();
        if is_text(name) {
            let texts: Vec<_> = values().filter_map(Value::as_str).map(ByteArray::from).collect();
            column.typed::<ByteArrayType>().write_batch(&texts, Some(&levels), None)?;
        } else {
            let numbers: Vec<_> = values().filter(|value| !value.is_null()).map(saturated).collect();
            column.typed::<Int64Type>().write_batch(&numbers, Some(&levels), None)?;
        }
        column.close()?;
    }
    group.close()?;
    file.into_inner()
}

fn saturated(number: &Value) -> i64 {
    number.as_i64().unwrap_or(i64::MAX)
}
