/**
 * The button's texts, in the same languages as the bot's. Each language is one string, because that compresses best.
 * "|" separates its texts: label, scan, open, waiting, nothing happens, send, copy, close, try again, confirmed,
 * cancelled, no longer valid, no connection, failed, choose.
 *
 * @type {Record<string, string>}
 */
const LANGUAGES = {
  en: "Sign in with Telegram|Scan this code with your phone|Open Telegram|Waiting for you to confirm…|Nothing happens?|Send this to the bot:|Copy|Close|Try again|Confirmed|Cancelled|This request is no longer valid.|No connection. Trying again…|Sign-in failed|Choose this number in Telegram:",
  ru: "Войти через Telegram|Отсканируйте код телефоном|Открыть Telegram|Ждём вашего подтверждения…|Ничего не происходит?|Отправьте боту:|Скопировать|Закрыть|Повторить|Подтверждено|Отменено|Запрос больше не действует.|Нет связи. Пробуем снова…|Не удалось войти|Выберите это число в Telegram:",
  uk: "Увійти через Telegram|Відскануйте код телефоном|Відкрити Telegram|Чекаємо на ваше підтвердження…|Нічого не відбувається?|Надішліть боту:|Скопіювати|Закрити|Повторити|Підтверджено|Скасовано|Запит більше не дійсний.|Немає зв’язку. Пробуємо знову…|Не вдалося увійти|Виберіть це число в Telegram:",
  es: "Iniciar sesión con Telegram|Escanee el código con su teléfono|Abrir Telegram|Esperando su confirmación…|¿No ocurre nada?|Envíe esto al bot:|Copiar|Cerrar|Intentar de nuevo|Confirmado|Cancelado|La solicitud ya no es válida.|Sin conexión. Reintentando…|No se pudo iniciar sesión|Elija este número en Telegram:",
  pt: "Entrar com o Telegram|Escaneie o código com o celular|Abrir o Telegram|Aguardando sua confirmação…|Não acontece nada?|Envie isto ao bot:|Copiar|Fechar|Tentar de novo|Confirmado|Cancelado|O pedido já não é válido.|Sem conexão. Tentando de novo…|Não foi possível entrar|Escolha este número no Telegram:",
  fa: "ورود با تلگرام|کد را با تلفن خود اسکن کنید|باز کردن تلگرام|در انتظار تأیید شما…|اتفاقی نمی‌افتد؟|این را برای ربات بفرستید:|کپی|بستن|تلاش دوباره|تأیید شد|لغو شد|این درخواست دیگر معتبر نیست.|اتصال برقرار نیست. تلاش دوباره…|ورود انجام نشد|این عدد را در تلگرام انتخاب کنید:",
  ar: "تسجيل الدخول عبر Telegram|امسح الرمز بهاتفك|فتح Telegram|في انتظار تأكيدك…|لا يحدث شيء؟|أرسل هذا إلى البوت:|نسخ|إغلاق|إعادة المحاولة|تم التأكيد|تم الإلغاء|لم يعد هذا الطلب صالحًا.|لا يوجد اتصال. إعادة المحاولة…|تعذّر تسجيل الدخول|اختر هذا الرقم في Telegram:",
  id: "Masuk dengan Telegram|Pindai kode dengan ponsel Anda|Buka Telegram|Menunggu konfirmasi Anda…|Tidak terjadi apa-apa?|Kirim ini ke bot:|Salin|Tutup|Coba lagi|Dikonfirmasi|Dibatalkan|Permintaan ini tidak berlaku lagi.|Tidak ada koneksi. Mencoba lagi…|Gagal masuk|Pilih angka ini di Telegram:",
  tr: "Telegram ile oturum aç|Kodu telefonunuzla tarayın|Telegram’ı aç|Onayınız bekleniyor…|Bir şey olmuyor mu?|Bunu bota gönderin:|Kopyala|Kapat|Yeniden dene|Onaylandı|İptal edildi|Bu istek artık geçerli değil.|Bağlantı yok. Yeniden deneniyor…|Oturum açılamadı|Telegram’da bu sayıyı seçin:",
  uz: "Telegram orqali kirish|Kodni telefoningiz bilan skanerlang|Telegramni ochish|Tasdiqlashingiz kutilmoqda…|Hech narsa bo‘lmayaptimi?|Buni botga yuboring:|Nusxalash|Yopish|Qayta urinish|Tasdiqlandi|Bekor qilindi|So‘rov endi amal qilmaydi.|Aloqa yo‘q. Qayta urinilmoqda…|Kirib bo‘lmadi|Telegramda shu sonni tanlang:",
};

/** @typedef {{ language: string, direction: "ltr" | "rtl", texts: string[] }} Speech */

/**
 * Return the texts of the first available language: the requested one, the page's, the browser's, English.
 *
 * @param {string | null} wanted An IETF language tag.
 * @returns {Speech}
 */
export const speechFor = (wanted) => {
  const tags = [wanted || "", document.documentElement.lang, ...navigator.languages, "en"];
  const language = tags.map((tag) => tag.toLowerCase().split("-")[0]).find((each) => Object.hasOwn(LANGUAGES, each)) ?? "en";
  return { language, direction: /fa|ar/.test(language) ? "rtl" : "ltr", texts: LANGUAGES[language].split("|") };
};
